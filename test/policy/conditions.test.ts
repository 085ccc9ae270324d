import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../src/contract/json.ts'
import { Rule } from '../../src/contract/rule.ts'
import { decide } from '../../src/policy/policy.ts'

/** Whether a rule with these conditions matches a call with these arguments. */
function holds(conditions: Record<string, unknown>, given: JsonObject): boolean {
  const rule = Rule.parse({ arguments: conditions, action: 'deny' })
  const subject = { tool: 't', server: 's', risk: 'read', principal: 'agent:a', arguments: given, now: 0 } as const
  return decide([{ scope: 'global', rules: [rule] }], subject).action === 'deny'
}

const given: JsonObject = {
  path: '/srv/docs/a.txt',
  amount: 40,
  dry: false,
  none: null,
  tags: ['blue', { deep: [1, 2] }],
  'a/b': { '~': 'odd' },
  '': 'empty',
  nested: { env: 'staging', '0': 'zero' },
}

describe('a condition', () => {
  it.each<[string, unknown, boolean]>([
    ['/path', '/srv/docs/a.txt', true],
    ['/path', '/srv', false],
    ['/amount', 40, true],
    ['/amount', '40', false],
    ['/dry', false, true],
    ['/dry', 0, false],
    ['/none', null, true],
    ['/none', 'null', false],
    ['/missing', null, false],
    ['/path', { equals: '/srv/docs/a.txt' }, true],
    ['/path', { glob: '/srv/**' }, true],
    ['/path', { glob: ['/etc/*', '*.txt'] }, true],
    ['/path', { glob: '/etc/*' }, false],
    ['/amount', { glob: '*' }, false],
    ['/missing', { glob: '*' }, false],
    ['/amount', { min: 40, max: 40 }, true],
    ['/amount', { min: 41 }, false],
    ['/amount', { max: 39.9 }, false],
    ['/path', { min: 0 }, false],
    ['/none', { max: 1 }, false],
    ['/missing', { min: 0 }, false],
    ['/nested/env', { in: ['staging', 'test'] }, true],
    ['/nested/env', { in: ['live', 1, null] }, false],
    ['/missing', { in: ['x', null] }, false],
    ['/nested/env', { not: 'live' }, true],
    ['/nested/env', { not: ['live', 'staging'] }, false],
    ['/missing', { not: 'live' }, true],
    ['/missing', { not: 'live', exists: true }, false],
    ['/none', { exists: true }, true],
    ['/none', { exists: false }, false],
    ['/missing', { exists: false }, true],
    ['/tags/0', 'blue', true],
    ['/tags/1/deep/1', 2, true],
    ['/tags/2', { exists: true }, false],
    ['/tags/-', { exists: true }, false],
    ['/tags/00', { exists: true }, false],
    ['/tags/length', { exists: true }, false],
    ['/nested/0', 'zero', true],
    ['/path/0', { exists: true }, false],
    ['/a~1b/~0', 'odd', true],
    ['/', 'empty', true],
    ['/path', { glob: '/srv/*', not: '/srv/docs/a.txt' }, false],
  ])('on %s that says %j', (pointer, condition, expected) => {
    expect(holds({ [pointer]: condition }, given)).toBe(expected)
  })

  it('takes nothing for an argument that objects, lists and text have by themselves', () => {
    for (const pointer of [
      '/__proto__',
      '/constructor',
      '/constructor/name',
      '/toString',
      '/tags/map',
      '/path/length',
    ]) {
      expect(holds({ [pointer]: { exists: true } }, given)).toBe(false)
      expect(holds({ [pointer]: { exists: false } }, given)).toBe(true)
    }
    const sent: JsonObject = JSON.parse('{"__proto__":{"admin":true}}')
    expect(holds({ '/__proto__/admin': true }, sent)).toBe(true)
    expect(holds({ '/admin': { exists: true } }, sent)).toBe(false)
  })
})

describe('a rule is refused', () => {
  it.each<[string, unknown, string]>([
    ['without a slash', { path: 'x' }, 'must be a JSON pointer'],
    ['as a whole', { '': 'x' }, 'must be a JSON pointer'],
    ['with half an escape', { '/a~': 'x' }, 'must be a JSON pointer'],
    ['with an unknown escape', { '/a~2': 'x' }, 'must be a JSON pointer'],
  ])('for a pointer %s', (_, conditions, message) => {
    const { error } = Rule.safeParse({ arguments: conditions, action: 'deny' })
    expect(JSON.stringify(error?.issues)).toContain(message)
  })

  it.each<[string, unknown]>([
    ['no condition', {}],
    ['min over max', { min: 2, max: 1 }],
    ['a value that is not there and equals something', { exists: false, equals: 1 }],
    ['an empty list', { in: [] }],
    ['a list to be equal to', ['a']],
    ['an unknown word', { regex: '.*' }],
    ['text as a bound', { min: '1' }],
  ])('for %s', (_, condition) => {
    expect(Rule.safeParse({ arguments: { '/a': condition }, action: 'deny' }).success).toBe(false)
  })
})

const json = fc.jsonValue({ maxDepth: 3 }).map((value): JsonValue => JSON.parse(JSON.stringify(value)))
const objects = fc.dictionary(fc.string(), json)

/** Every place in a value, as a pointer, with what stands there. */
function places(value: JsonValue, pointer = ''): [string, JsonValue][] {
  const here: [string, JsonValue][] = pointer === '' ? [] : [[pointer, value]]
  if (typeof value !== 'object' || value === null) return here
  const inside = Object.entries(value).map(([key, entry]): [string, JsonValue] => [
    `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
    entry,
  ])
  return [...here, ...inside.flatMap(([deeper, entry]) => places(entry, deeper))]
}

const isScalar = (value: JsonValue) => typeof value !== 'object' || value === null

it('finds by its pointer whatever stands anywhere in generated arguments, and nothing beside it', () => {
  fc.assert(
    fc.property(objects, (sent) => {
      for (const [pointer, value] of places(sent).slice(0, 30)) {
        expect(holds({ [pointer]: { exists: true } }, sent)).toBe(true)
        expect(holds({ [`${pointer}/no such key`]: { exists: true } }, sent)).toBe(false)
        if (!isScalar(value)) continue
        expect(holds({ [pointer]: value }, sent)).toBe(true)
        expect(holds({ [pointer]: { in: [value] } }, sent)).toBe(true)
        expect(holds({ [pointer]: { not: value } }, sent)).toBe(false)
        expect(holds({ [pointer]: { glob: '*' } }, sent)).toBe(typeof value === 'string')
        if (typeof value === 'number') expect(holds({ [pointer]: { min: value, max: value } }, sent)).toBe(true)
      }
    }),
    { numRuns: 100 },
  )
})

it('never takes an absent value, or one of another type, for what a rule demands', () => {
  const demands = fc.oneof(
    fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)).map((equals) => ({ equals })),
    fc.string().map((glob) => ({ glob })),
    fc.integer().map((min) => ({ min })),
    fc.integer().map((max) => ({ max })),
  )
  fc.assert(
    fc.property(objects, demands, fc.oneof(json, fc.constant(undefined)), (sent, demand, value) => {
      const { wanted: _wanted, ...others } = sent
      const matched = holds({ '/wanted': demand }, value === undefined ? others : { ...others, wanted: value })
      if (!matched) return
      if ('equals' in demand) expect(value).toBe(demand.equals)
      else expect(typeof value).toBe('glob' in demand ? 'string' : 'number')
    }),
    { numRuns: 200 },
  )
})
