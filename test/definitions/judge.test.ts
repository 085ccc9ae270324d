import { ListToolsResultSchema as ListV2 } from '@modelcontextprotocol/core'
import { ListToolsResultSchema as ListV1 } from '@modelcontextprotocol/sdk/types.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toWire } from '../../src/catalog/view.ts'
import { judgeTools } from '../../src/definitions/judge.ts'
import { offer } from '../catalog/support.ts'
import { judge, judgeOne, toItem, toolLike } from './support.ts'

const schema = { type: 'object' }
const hidden = 'its name contains characters that are not visible ASCII'

describe('a name', () => {
  it.each<[string, unknown]>([
    ['too long', 'n'.repeat(129)],
    ['empty', ''],
    ['blank', '   '],
    ['a number', 42],
    ['missing', undefined],
    ['with a line break', 'with\nnewline'],
    ['with an escape sequence', '\x1b[31mred\x1b[0m'],
    ['with a zero-width character', 'zero\u200bwidth'],
    ['that turns around', 'right\u202eleft'],
    ['with a letter that looks like another', 're\u0430d'],
    ['with a picture', 'rocket_🚀'],
  ])('that is %s is put aside with a reason, and the others work', (_, name) => {
    const { tools, setAside } = judge(
      { name: 'before', inputSchema: schema },
      { name, inputSchema: schema },
      { name: 'after' },
    )
    expect(tools.map((tool) => tool.name)).toEqual(['before', 'after'])
    expect(setAside).toEqual([
      { name: expect.any(String), reason: expect.stringMatching(/^(it has no name|its name (has|contains) )/) },
    ])
    expect(setAside[0]?.name).toMatch(/^[\x20-\x7e\u0430🚀]+$/u)
  })

  it.each(['with spaces', 'path/../name', 'dotted.name.', 'n'.repeat(128), '__proto__', 'constructor'])(
    'such as %s works',
    (name) => expect(judgeOne({ name, inputSchema: schema }).name).toBe(name),
  )

  it('is shown escaped where it is put aside', () => {
    const { setAside } = judge({ name: 'a\u202eb\nc\td' })
    expect(setAside).toEqual([{ name: 'a\\u{202e}b\\nc\\td', reason: hidden }])
  })

  it('that is listed twice belongs to the first', () => {
    const { tools, setAside } = judge({ name: 'a', description: 'one' }, { name: 'a', description: 'two' })
    expect(tools.map(({ description }) => description)).toEqual(['one'])
    expect(setAside).toEqual([{ name: 'a', reason: 'the server lists this name twice' }])
  })
})

describe('a definition', () => {
  it.each([
    ['its definition is not an object', '(none)', 'null'],
    ['its definition is not an object', '(none)', '[]'],
    ['its definition is not JSON', '(unknown)', '{"name":'],
    ['its definition is nested too deeply', 'deep', `{"name":"deep","x":${'['.repeat(600)}${']'.repeat(600)}}`],
    ['its definition has 300022 bytes, more than 262144', 'huge', `{"name":"huge","x":"${'x'.repeat(300_000)}"}`],
  ])('is put aside: %s', (reason, name, text) => {
    expect(judge(text)).toEqual({ tools: [], setAside: [{ name, reason }] })
  })

  it('without description, title or annotations is a tool all the same', () => {
    expect(judgeOne({ name: 'a', description: 5, title: {}, annotations: 'none' })).toMatchObject({
      description: '',
      title: undefined,
      annotations: undefined,
    })
  })

  it('keeps each hint that can be read beside those that cannot', () => {
    const annotations = { title: 42, readOnlyHint: 'yes', destructiveHint: true, own: { any: 'thing' } }
    expect(judgeOne({ name: 'a', annotations }).annotations).toEqual({ destructiveHint: true, own: { any: 'thing' } })
  })

  it('has a hash that changes with any byte of it', () => {
    const hashes = [{ name: 'a' }, { name: 'a', description: '' }, { name: 'a', description: ' ' }].map(
      (tool) => judgeOne(tool).hash,
    )
    expect(new Set(hashes).size).toBe(3)
  })

  it('passes on what else the server says, where it is in proper form', () => {
    const known = { _meta: { a: 1 }, icons: [{ src: 'https://example.com/i.png' }] }
    const rest = { ...known, future: [1], execution: { taskSupport: 'required' } }
    expect(judgeOne({ name: 'a', ...rest }).rest).toEqual(rest)
    const slips = { _meta: 5, icons: [{ src: 5 }], execution: { taskSupport: 'sometimes' } }
    expect(judgeOne({ name: 'a', ...slips, future: null }).rest).toEqual({ future: null })
  })
})

it('judges whatever stands in a list of tools, and never throws', () => {
  fc.assert(
    fc.property(fc.array(toolLike, { maxLength: 5 }), (items) => {
      const { tools, setAside } = judge(...items.map((item) => JSON.stringify(item)))
      expect(tools.length + setAside.length).toBe(items.length)
      for (const { name, reason } of setAside) {
        expect(name).not.toBe('')
        expect(reason).not.toBe('')
      }
      expect(Object.keys({})).toEqual([])
    }),
    { numRuns: 500 },
  )
})

it('judges bytes that are no JSON at all, and never throws', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const { tools, setAside } = judgeTools([Buffer.from(bytes)])
      expect(tools.length + setAside.length).toBe(1)
    }),
  )
})

it('offers only lists that the official clients of both generations take, whatever a server listed', () => {
  fc.assert(
    fc.property(fc.array(toolLike, { maxLength: 4 }), (items) => {
      const { tools } = offer(judge(...items.map((item) => JSON.stringify(item))).tools)
      const list = JSON.parse(JSON.stringify({ tools: tools.map(toWire) }))
      expect(ListV1.safeParse(list).error).toBeUndefined()
      expect(ListV2.safeParse(list).error).toBeUndefined()
    }),
    { numRuns: 1000 },
  )
})

it('judges what did not change in a list as it did before', () => {
  const tools = fc.array(
    fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), description: fc.constantFrom('x', 'y', 'z') }),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(tools, tools, (first, second) => {
      const before = judgeTools(first.map(toItem))
      const again = judgeTools(second.map(toItem), before)
      const afresh = judgeTools(second.map(toItem))
      expect(again).toEqual(afresh)
    }),
    { numRuns: 200 },
  )
})
