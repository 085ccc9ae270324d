import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../src/contract/json.ts'
import { checkMirrors, findMirrors, type Mirror, toMirrorHeaders } from '../../src/wire/mirrors.ts'

function marked(properties: Record<string, JsonValue>): JsonObject {
  return { type: 'object', properties }
}

function mirrorsOf(schema: JsonObject): readonly Mirror[] {
  const found = findMirrors(schema)
  if ('problem' in found) throw new Error(found.problem)
  return found.mirrors
}

const region = { type: 'string', 'x-mcp-header': 'Region' }
const schema = marked({
  region,
  count: { type: 'integer', 'x-mcp-header': 'Count' },
  dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
  inner: marked({ tenant: { type: 'string', 'x-mcp-header': 'Tenant' } }),
  plain: { type: 'string' },
})

describe('arguments that a schema marks', () => {
  it('travel in headers as well, wherever they stand in objects, and those that are not given do not', () => {
    const given = { region: 'eu', count: 3, dry: false, inner: { tenant: 'a b' }, plain: 'no' }
    expect(toMirrorHeaders(mirrorsOf(schema), given)).toEqual({
      'mcp-param-region': 'eu',
      'mcp-param-count': '3',
      'mcp-param-dry': 'false',
      'mcp-param-tenant': 'a b',
    })
    expect(toMirrorHeaders(mirrorsOf(schema), { region: null })).toEqual({})
  })

  it('agree with the headers that were made of them, whatever their text is', () => {
    const given = fc.record({ region: fc.string({ unit: 'binary' }), count: fc.integer(), dry: fc.boolean() })
    fc.assert(
      fc.property(given, (values) => {
        const headers = toMirrorHeaders(mirrorsOf(schema), values)
        for (const value of Object.values(headers)) expect(value).toMatch(/^[\x20-\x7e]*$/)
        expect(checkMirrors(mirrorsOf(schema), values, headers)).toBeUndefined()
      }),
    )
  })

  it.each([
    ['another value', { region: 'eu' }, { 'mcp-param-region': 'us' }],
    ['no header', { region: 'eu' }, {}],
    ['a header without an argument', {}, { 'mcp-param-region': 'eu' }],
    ['base 64 without its padding', { region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }],
    ['base 64 with other letters', { region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVs!!!bG8=?=' }],
  ])('are refused with %s', (_what, given, headers) => {
    expect(checkMirrors(mirrorsOf(schema), given, headers)).toMatchObject({ code: 'header-mismatch' })
  })

  it.each([
    ['an empty name', marked({ a: { type: 'string', 'x-mcp-header': '' } })],
    ['a blank in its name', marked({ a: { type: 'string', 'x-mcp-header': 'My Region' } })],
    ['a colon in its name', marked({ a: { type: 'string', 'x-mcp-header': 'a:b' } })],
    ['a line end in its name', marked({ a: { type: 'string', 'x-mcp-header': 'a\r\nb' } })],
    ['letters of another alphabet', marked({ a: { type: 'string', 'x-mcp-header': 'Région' } })],
    ['a name that is no text', marked({ a: { type: 'string', 'x-mcp-header': 1 } })],
    ['an object', marked({ a: { type: 'object', 'x-mcp-header': 'A' } })],
    ['a list', marked({ a: { type: 'array', 'x-mcp-header': 'A' } })],
    ['any number', marked({ a: { type: 'number', 'x-mcp-header': 'A' } })],
    ['nothing', marked({ a: { type: 'null', 'x-mcp-header': 'A' } })],
    ['a name twice, however it is written', marked({ a: region, b: { type: 'string', 'x-mcp-header': 'REGION' } })],
  ])('make their tool unusable by %s', (_what, bad) => {
    expect(findMirrors(bad)).toEqual({ problem: expect.stringContaining('x-mcp-header') })
  })
})
