import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonError } from '../../src/lib/json.ts'
import { createAnswer, isToolError, memberText } from '../../src/wire/answer.ts'
import { readEnvelope } from '../../src/wire/envelope.ts'
import { toLegacyResult } from '../../src/wire/legacy.ts'
import { lackingIn, toModernResult } from '../../src/wire/modern.ts'
import { addMembers, dropMember, toMessage } from '../../src/wire/splice.ts'

const read = (text: string) => readEnvelope(Buffer.from(text))
const spanText = (text: string, span: { start: number; end: number } | undefined) =>
  span && Buffer.from(text).toString('utf8', span.start, span.end)

describe('an envelope', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"ping"}', { kind: 'request', id: '1', method: 'ping', params: undefined }],
    ['{"jsonrpc":"2.0","id":"1","method":"ping"}', { kind: 'request', id: '"1"', method: 'ping', params: undefined }],
    ['{"jsonrpc":"2.0","id":-1.5,"method":"p\\u0069ng"}', { kind: 'request', id: '-1.5', method: 'ping' }],
    ['{"jsonrpc":"2.0","method":"x/y"}', { kind: 'notification', method: 'x/y', params: undefined }],
    ['{"result":{},"id":7,"jsonrpc":"2.0"}', { kind: 'result', id: '7' }],
    ['{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}', { kind: 'error', id: 'null' }],
  ])('of %s is looked at without being built', (text, expected) => {
    expect(read(text)).toMatchObject(expected)
  })

  it('tells where its contents stand', () => {
    const call = '{"jsonrpc":"2.0","params": {"é":[1, 2]} ,"id":1,"method":"x"}'
    const request = read(call)
    expect(request.kind === 'request' && spanText(call, request.params)).toBe('{"é":[1, 2]}')
    const text = '{"jsonrpc":"2.0","id":1,"result": {"a":"}"} }'
    const answer = read(text)
    expect(answer.kind === 'result' && spanText(text, answer.span)).toBe('{"a":"}"}')
  })

  it.each([
    ['no JSON', '{"jsonrpc":"2.0","id":1,"result":'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"result":{}}]'],
    ['no object', '42'],
    ['another version', '{"jsonrpc":"1.0","id":1,"result":{}}'],
    ['no version', '{"id":1,"result":{}}'],
    ['neither method nor id', '{"jsonrpc":"2.0"}'],
    ['an answer without content', '{"jsonrpc":"2.0","id":1}'],
    ['a result and an error at once', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'],
    ['two ids', '{"jsonrpc":"2.0","id":1,"id":2,"result":{}}'],
    ['two ids, one of them disguised', '{"jsonrpc":"2.0","id":1,"i\\u0064":2,"result":{}}'],
    ['two methods', '{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}'],
    ['a method that is no text', '{"jsonrpc":"2.0","id":1,"method":{}}'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"a"}'],
    ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"a"}'],
    ['something behind it', '{"jsonrpc":"2.0","id":1,"result":{}} {}'],
  ])('with %s is refused', (_what, text) => {
    expect(() => read(text)).toThrow(JsonError)
  })

  it('is what it was before the caller’s id was put back into it', () => {
    const id = fc
      .oneof(fc.integer(), fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }))
      .map((value) => JSON.stringify(value))
    fc.assert(
      fc.property(
        id,
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom('result' as const, 'error' as const),
        (raw, value, kind) => {
          const message = toMessage(raw, kind, Buffer.from(JSON.stringify(value)))
          const envelope = readEnvelope(message)
          expect(envelope).toMatchObject({ kind, id: raw })
          expect(JSON.parse(message.toString())).toEqual({
            jsonrpc: '2.0',
            id: JSON.parse(raw),
            [kind]: JSON.parse(JSON.stringify(value)),
          })
        },
      ),
    )
  })
})

describe('members of an answer', () => {
  const object = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'é"', 'resultType'), fc.jsonValue(), { maxKeys: 5 })
  const spaced = fc.tuple(object, fc.constantFrom(0, 2))

  it('can be taken off, wherever they stand, and the rest stays', () => {
    fc.assert(
      fc.property(spaced, fc.constantFrom('a', 'b', 'resultType', 'absent'), ([value, indent], key) => {
        const answer = createAnswer('result', Buffer.from(JSON.stringify(value, null, indent)))
        const whole = JSON.parse(JSON.stringify(value))
        delete whole[key]
        expect(JSON.parse(dropMember(answer, key).bytes.toString())).toEqual(whole)
      }),
    )
  })

  it('can be put in front, also of nothing', () => {
    fc.assert(
      fc.property(spaced, ([value, indent]) => {
        const answer = createAnswer('result', Buffer.from(JSON.stringify(value, null, indent)))
        const added = JSON.parse(addMembers(answer, ['"x":1', '"y":[2]']).bytes.toString())
        expect(added).toEqual({ x: 1, y: [2], ...JSON.parse(JSON.stringify(value)) })
      }),
    )
  })

  it('are found by name, and only at the top', () => {
    const answer = createAnswer('result', Buffer.from('{"inner":{"isError":true},"isError":false}'))
    expect(memberText(answer, 'isError')).toBe('false')
    expect(isToolError(answer)).toBe(false)
    expect(isToolError(createAnswer('result', Buffer.from('{"content":[],"isError": true }')))).toBe(true)
  })

  it('are those of the era that the answer goes to', () => {
    const old = createAnswer('result', Buffer.from('{"tools":[]}'))
    const modern = toModernResult(old, { ttlMs: 5 })
    expect(JSON.parse(modern.bytes.toString())).toEqual({
      resultType: 'complete',
      ttlMs: 5,
      cacheScope: 'private',
      tools: [],
    })
    expect(JSON.parse(toLegacyResult(modern).bytes.toString())).not.toHaveProperty('resultType')
    expect(toModernResult(modern)).toBe(modern)
    expect(toLegacyResult(old)).toBe(old)
  })

  it('say in the number of the era that a resource is not there, and leave other wrong parameters as they are', () => {
    const toError = (error: object) => createAnswer('error', Buffer.from(JSON.stringify(error)))
    const gone = { message: 'gone', data: { uri: 'test://gone' } }
    expect(toLegacyResult(toError({ code: -32602, ...gone })).value()).toEqual({ code: -32002, ...gone })
    expect(toModernResult(toError({ code: -32002, ...gone })).value()).toEqual({ code: -32602, ...gone })
    const wrong = toError({ code: -32602, message: 'wrong', data: { uri: 'test://a', field: 'name' } })
    expect(toLegacyResult(wrong)).toBe(wrong)
    expect(lackingIn(toError({ code: -32021, data: { requiredCapabilities: { roots: {} } } }))).toEqual({ roots: {} })
    expect(lackingIn(wrong)).toBeUndefined()
  })
})
