import { describe, expect, it } from 'vitest'
import { type DefinitionInput, toDefinition } from '../../src/cli/commands/servers/definition.ts'
import { toArguments, toArgumentsObject } from '../../src/cli/commands/tools/arguments.ts'

const schema = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    count: { type: 'integer' },
    ratio: { type: 'number' },
    deep: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' } },
    options: { $ref: '#/$defs/options' },
    either: { type: ['string', 'number'] },
    choice: { anyOf: [{ type: 'number' }, { type: 'null' }] },
    open: {},
  },
  $defs: { options: { type: 'object' } },
}

describe('arguments of a tool on the command line', () => {
  it.each([
    ['text=42', { text: '42' }],
    ['text=true', { text: 'true' }],
    ['text=a=b', { text: 'a=b' }],
    ['text=', { text: '' }],
    ['count=42', { count: 42 }],
    ['count=many', { count: 'many' }],
    ['count=1.5', { count: '1.5' }],
    ['ratio=1.5', { ratio: 1.5 }],
    ['deep=true', { deep: true }],
    ['deep=yes', { deep: 'yes' }],
    ['tags=["a","b"]', { tags: ['a', 'b'] }],
    ['options={"a":1}', { options: { a: 1 } }],
    ['either=7', { either: 7 }],
    ['either=seven', { either: 'seven' }],
    ['choice=null', { choice: null }],
    ['open={"a":[1]}', { open: { a: [1] } }],
    ['open=007', { open: '007' }],
    ['unknown=1', { unknown: 1 }],
    ['text:=42', { text: 42 }],
    ['x:y=z', { 'x:y': 'z' }],
  ])('reads %s as the schema wants it', (pair, expected) => {
    expect(toArguments([pair], schema)).toEqual(expected)
  })

  it('keeps every argument, the last of the same name', () => {
    expect(toArguments(['text=a', 'count=1', 'text=b'], schema)).toEqual({ text: 'b', count: 1 })
  })

  it('refuses what is no argument, and says how one looks', () => {
    expect(() => toArguments(['text'], schema)).toThrow(/NAME=VALUE or NAME:=JSON/)
    expect(() => toArguments(['count:=x'], schema)).toThrow(/--arg count is not JSON/)
  })

  it('names the argument that was probably meant where the tool takes no others', () => {
    const closed = { type: 'object', properties: { path: { type: 'string' } }, additionalProperties: false }
    expect(() => toArguments(['pth=a'], closed)).toThrow(/no argument pth. Did you mean path\?/)
  })

  it('survives a schema that is nonsense', () => {
    expect(toArguments(['a=1'], 'nonsense')).toEqual({ a: 1 })
    expect(toArguments(['a=1'], { properties: { a: { $ref: '#/properties/a' } } })).toEqual({ a: 1 })
  })

  it('takes all of them as one JSON object', () => {
    expect(toArgumentsObject('{"a":[1]}')).toEqual({ a: [1] })
    expect(() => toArgumentsObject('[1]')).toThrow(/one JSON object/)
    expect(() => toArgumentsObject('{')).toThrow(/--args is not JSON/)
  })
})

describe('a server on the command line', () => {
  const nothing: DefinitionInput = { command: [], header: [], sse: false, env: [], disabled: false }

  it('is an address with headers', () => {
    const header = ['Authorization: Bearer ${TOKEN}', 'X-Team: a:b']
    expect(toDefinition({ ...nothing, url: 'https://example.com/mcp', header })).toMatchObject({
      transport: 'http',
      url: 'https://example.com/mcp',
      headers: { Authorization: 'Bearer ${TOKEN}', 'X-Team': 'a:b' },
    })
    expect(toDefinition({ ...nothing, url: 'https://example.com/sse', sse: true })).toMatchObject({ transport: 'sse' })
  })

  it('is a command with its environment', () => {
    const input = { ...nothing, command: ['npx', '-y', 'server'], env: ['A=b=c'], cwd: '/srv', disabled: true }
    expect(toDefinition({ ...input, defaultRisk: 'danger', trust: 'none' })).toMatchObject({
      transport: 'stdio',
      command: 'npx',
      args: ['-y', 'server'],
      env: { A: 'b=c' },
      cwd: '/srv',
      enabled: false,
      defaultRisk: 'danger',
      trust: 'none',
    })
  })

  it.each([
    ['{"command":"npx","args":["x"]}', { transport: 'stdio', command: 'npx' }],
    ['{"type":"stdio","command":"npx"}', { transport: 'stdio' }],
    ['{"type":"sse","url":"https://example.com"}', { transport: 'sse' }],
    ['{"type":"http","url":"https://example.com"}', { transport: 'http' }],
    ['{"transport":"http","url":"https://example.com"}', { transport: 'http' }],
  ])('is JSON as other programs write it: %s', (fromJson, expected) => {
    expect(toDefinition({ ...nothing, fromJson })).toMatchObject(expected)
  })

  it.each([
    [{}, /exactly one of/],
    [{ url: 'https://example.com', command: ['npx'] }, /exactly one of/],
    [{ url: 'https://example.com', env: ['A=b'] }, /only with a command/],
    [{ command: ['npx'], header: ['A: b'] }, /only with --url/],
    [{ url: 'https://example.com', header: ['nonsense'] }, /not of the form --header/],
    [{ fromJson: '{' }, /not JSON/],
    [{ fromJson: '{"command":"npx","colour":1}' }, /colour/],
  ])('is refused with the reason when it makes no sense', (input, reason) => {
    expect(() => toDefinition({ ...nothing, ...input })).toThrow(reason)
  })
})

it.each([
  ['id:=9007199254740993', {}],
  ['id=9007199254740993', { properties: { id: { type: 'integer' } } }],
  ['amount:=1e400', {}],
  ['given:={"a":1,"a":2}', {}],
  ['given:={"__proto__":1}', {}],
])('refuses %s, which would be sent as something else', (pair, schema) => {
  expect(() => toArguments([pair], { type: 'object', ...schema })).toThrow(
    expect.objectContaining({ code: 'json-inexact' }),
  )
})

it('takes a long number as text where the tool takes text as well', () => {
  const schema = { type: 'object', properties: { id: { type: ['integer', 'string'] } } }
  expect(toArguments(['id=9007199254740993'], schema)).toEqual({ id: '9007199254740993' })
})
