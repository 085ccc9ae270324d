import { AjvJsonSchemaValidator as ValidatorV2 } from '@modelcontextprotocol/client/validators/ajv'
import { AjvJsonSchemaValidator as ValidatorV1 } from '@modelcontextprotocol/sdk/validation/ajv'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../src/contract/json.ts'
import { judgeSchema } from '../../src/definitions/schema.ts'
import { isObject, parseJson } from '../../src/lib/json.ts'
import { badSchemas } from '../fixtures/hostile/bad-schemas.ts'
import { judge, judgeOne, schemaLike } from './support.ts'

const anyObject = { type: 'object', additionalProperties: true }

function usable(schema: JsonValue | undefined): { schema: JsonObject; mended: string | undefined } {
  const judged = judgeSchema(schema)
  if (judged.kind === 'dangerous') throw new Error(judged.reason)
  return judged
}

function danger(schema: JsonValue): string {
  const judged = judgeSchema(schema)
  return judged.kind === 'dangerous' ? judged.reason : 'none'
}

describe('the fixture of bad schemas', () => {
  const judged = new Map(badSchemas().map((text) => [nameOf(text), judge(text)]))
  function nameOf(text: string): string {
    return /"name":"(\w+)"/.exec(text)?.[1] ?? text
  }

  it.each<[string, object, string]>([
    ['no_type', { type: 'object', properties: { a: { type: 'string' } } }, 'type: object was added'],
    ['missing_schema', anyObject, 'the schema is missing; any object is accepted'],
    ['array_schema', anyObject, 'the type of the schema is not object; any object is accepted'],
    ['boolean_schema', anyObject, 'the schema is not an object; any object is accepted'],
    ['redos', { type: 'object', properties: { a: { type: 'string' } } }, 'removed from its schema: pattern'],
  ])('has %s mended', (name, inputSchema, mended) => {
    expect(judged.get(name)?.tools).toMatchObject([{ name, mended }])
    expect(judged.get(name)?.tools[0]?.inputSchema).toEqual(inputSchema)
  })

  it.each([
    ['deep_schema', 'its definition is nested too deeply'],
    ['huge_schema', 'its definition has 479002 bytes, more than 262144'],
    ['remote_ref', 'its input schema refers to another document'],
    ['cyclic_ref', 'its input schema refers to itself endlessly'],
  ])('has %s put aside: %s', (name, reason) => {
    expect(judged.get(name)?.tools).toEqual([])
    expect(judged.get(name)?.setAside[0]?.name).toBe(name)
    expect(judged.get(name)?.setAside[0]?.reason.replace(/\d+ bytes/, '479002 bytes')).toBe(reason)
  })

  it('keeps properties that are called like parts of every object, and pollutes nothing', () => {
    const schema = judged.get('proto_tool')?.tools[0]?.inputSchema
    expect(JSON.stringify(schema)).toContain('"__proto__":{"type":"object","properties":{"polluted"')
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

describe('a schema', () => {
  it('that is in order stays as it is', () => {
    const schema: JsonObject = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      title: 'A tree',
      properties: {
        children: { type: 'array', items: { $ref: '#' }, maxItems: 3, uniqueItems: true },
        kind: { enum: ['a', 'b'], default: 'a' },
        either: { anyOf: [{ type: 'string', pattern: '^[a-z]+$' }, { type: 'null' }] },
        named: { $ref: '#/$defs/my%20name' },
        pattern: { type: 'string' },
        $ref: { type: 'string' },
        id: { type: 'string' },
      },
      required: ['kind'],
      additionalProperties: false,
      $defs: { 'my name': { type: 'number', minimum: 0, exclusiveMaximum: 5 } },
      'x-own': { anything: [1, { $id: 'inert' }] },
    }
    expect(usable(schema)).toEqual({ kind: 'usable', schema, mended: undefined })
  })

  it.each<[string, JsonValue]>([
    ['a relative address', { $ref: 'other.json' }],
    ['an address behind another reference', { $ref: '#', $dynamicRef: 'http://127.0.0.1/' }],
    ['an address within alternatives', { anyOf: [{ not: { $ref: 'file:///etc/passwd' } }] }],
  ])('with %s is put aside', (_, schema) => {
    expect(danger({ type: 'object', properties: { a: schema } })).toBe('refers to another document')
  })

  it.each<[string, JsonObject]>([
    ['to itself', { $ref: '#' }],
    [
      'in a circle',
      {
        allOf: [{ $ref: '#/$defs/a' }],
        $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } },
      },
    ],
    ['to the whole it is part of', { allOf: [{ $ref: '#' }] }],
    ['by a condition', { if: {}, else: { $ref: '#' } }],
    ['by index', { anyOf: [{ $ref: '#/anyOf/1' }, { $ref: '#/anyOf/0' }] }],
  ])('that refers %s on the same value is put aside', (_, schema) => {
    expect(danger(schema)).toBe('refers to itself endlessly')
  })

  it('that doubles with every level is put aside', () => {
    const levels = Array.from({ length: 30 }, (_, level): [string, JsonValue] => {
      const next = { $ref: `#/$defs/l${level + 1}` }
      return [`l${level}`, { anyOf: [next, next] }]
    })
    const schema = {
      type: 'object',
      allOf: [{ $ref: '#/$defs/l0' }],
      $defs: { ...Object.fromEntries(levels), l30: {} },
    }
    expect(danger(schema)).toBe('expands to more than 10000 parts')
  })

  it('that is nested or spread out too far is put aside', () => {
    let deep: JsonObject = {}
    for (let level = 0; level < 70; level++) deep = { not: deep }
    expect(danger(deep)).toBe('is nested too deeply')
    expect(danger({ enum: Array.from({ length: 6000 }, (_, index) => index) })).toBe('has more than 5000 parts')
  })

  it.each<[string, JsonObject, JsonObject]>([
    ['unknown types', { type: 'any' }, {}],
    ['a flag where a number belongs', { type: 'number', exclusiveMinimum: true }, { type: 'number' }],
    ['an empty choice', { enum: [], anyOf: [] }, {}],
    ['a reference into nothing', { $ref: '#/$defs/none' }, {}],
    ['a reference into a value', { $ref: '#/default', default: 1 }, { default: 1 }],
    ['an anchor that is no name', { $anchor: 'a b' }, {}],
    ['a reference to an anchor that is not there', { $ref: '#here' }, {}],
    ['an address of its own', { $id: 'http://example.com/a', id: 'b', title: 'c' }, { title: 'c' }],
    ['a switch that makes checks late', { $async: true, type: 'null' }, { type: 'null' }],
    ['a broken expression', { pattern: '(' }, {}],
    [
      'an expression as the name of properties',
      { patternProperties: { '(a+)+$': {}, '^b$': {} }, additionalProperties: false },
      { patternProperties: { '^b$': {} } },
    ],
    ['a nullable nothing', { nullable: true }, {}],
  ])('has %s left out', (_, given, expected) => {
    const { schema, mended } = usable({ type: 'object', properties: { a: given } })
    expect(schema).toEqual({ type: 'object', properties: { a: expected } })
    expect(mended).toMatch(/^removed from its schema: /)
  })

  it('keeps an anchor and what refers to it, but not a second one of the same name', () => {
    const $defs = { first: { $anchor: 'here', type: 'string' }, second: { $anchor: 'here' } }
    const { schema } = usable({ type: 'object', properties: { a: { $ref: '#here' } }, $defs })
    expect(schema).toMatchObject({ properties: { a: { $ref: '#here' } }, $defs: { first: $defs.first, second: {} } })
    expect(judgeSchema({ $anchor: 'here', $ref: '#here' })).toMatchObject({ kind: 'dangerous' })
  })

  it('has true and false among its properties written as schemas', () => {
    const { schema, mended } = usable({ type: 'object', properties: { any: true, none: false } })
    expect(schema).toEqual({ type: 'object', properties: { any: {}, none: { not: {} } } })
    expect(mended).toBeUndefined()
  })

  it('has a tuple written the newer way, unless it says that it is older', () => {
    const tuple = { type: 'array', items: [{ type: 'string' }, true] }
    expect(usable({ type: 'object', properties: { a: tuple } }).schema.properties).toEqual({
      a: { type: 'array', prefixItems: [{ type: 'string' }, true] },
    })
    const $schema = 'http://json-schema.org/draft-07/schema#'
    expect(usable({ $schema, type: 'object', properties: { a: tuple } }).schema.properties).toEqual({ a: tuple })
  })

  it('for results that needs mending is left out, and the tool works', () => {
    const outputSchema = { type: 'object', properties: { a: { $ref: '#/$defs/none' } } }
    expect(judgeOne({ name: 'a', inputSchema: { type: 'object' }, outputSchema })).toMatchObject({
      outputSchema: undefined,
      mended: 'output schema removed',
    })
    expect(judgeOne({ name: 'a', outputSchema: { $ref: 'http://127.0.0.1/' } }).outputSchema).toBeUndefined()
  })
})

describe('an expression', () => {
  const kept = (pattern: string) => 'pattern' in usable({ type: 'object', pattern }).schema

  it.each([
    '^(a+)+$',
    '((a+))+',
    '(a|a)*$',
    '(a|aa)+$',
    '([a-z]+)*',
    '(?:a?){20,}',
    '(\\w+\\s?)*',
    '(a{2,}){3}',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
    '(.*)*',
    `${'a*'.repeat(11)}b`,
    'a'.repeat(1001),
  ])('such as %.30s, which can take for ever, is left out', (pattern) => expect(kept(pattern)).toBe(false))

  it.each(['(?i)abc', '\\A[a-z]+\\z', '[[:alpha:]]', 'a{', '\\-', '(?P<name>x)', '\\p{Greek}'])(
    'such as %s, which only other languages know, is left out',
    (pattern) => expect(kept(pattern)).toBe(false),
  )

  it.each([
    '^[a-z0-9-]+$',
    '^\\d{4}-\\d{2}-\\d{2}$',
    '^(\\d{3}-)?\\d+$',
    '^(a|b)$',
    '^([0-9]{4}-){3}[0-9]{4}$',
    '^\\(.*\\)$',
    '[(+*]+',
    '^https?://.+$',
    '^\\p{Lu}+$',
  ])('such as %s stays', (pattern) => expect(kept(pattern)).toBe(true))
})

function compiles(toSchema: (value: JsonValue) => JsonValue | undefined) {
  return fc.property(schemaLike, (value) => {
    const schema = toSchema(value)
    if (!isObject(schema)) return
    for (const validator of [new ValidatorV1(), new ValidatorV2()]) {
      expect(() => validator.getValidator(schema)({ a: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaa!' })).not.toThrow()
    }
  })
}

it('compiles in the official clients of both generations, whatever it was made from', () => {
  const judged = (value: JsonValue) => {
    const judgement = judgeSchema(value)
    return judgement.kind === 'usable' ? judgement.schema : undefined
  }
  fc.assert(compiles(judged), { numRuns: 300 })
})

it('would not compile there if it were passed on as it came', () => {
  expect(
    fc.check(
      compiles((value) => value),
      { numRuns: 1000 },
    ).failed,
  ).toBe(true)
})

it('says the same after it was mended once', () => {
  fc.assert(
    fc.property(schemaLike, (value) => {
      const judged = judgeSchema(value)
      if (judged.kind === 'dangerous') return
      const text = JSON.stringify(judged.schema)
      expect(JSON.stringify(usable(parseJson(text)).schema)).toBe(text)
    }),
    { numRuns: 500 },
  )
})
