import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import type { JsonObject } from '../../src/contract/json.ts'
import { isObject } from '../../src/lib/json.ts'
import { createModernCodec, isModernRequest, modernRevision, readModernRequest } from '../../src/wire/modern.ts'

const codec = createModernCodec({ name: 'tester', version: '1' })
const own = { progressToken: undefined, meta: undefined }

/** A request exactly as our own codec writes it towards servers. */
function written(method: string, params: JsonObject) {
  return { method, params: codec.shape(params, own), headers: codec.headers(method, params) }
}

describe('a stateless request', () => {
  it.each([
    ['tools/list', {}],
    ['tools/call', { name: 'plain_name' }],
    ['tools/call', { name: 'with spaces inside' }],
    ['tools/call', { name: ' blank at both ends ' }],
    ['tools/call', { name: 'žluťoučký 🚀' }],
    ['tools/call', { name: 'line\r\nInjected: header' }],
    ['tools/call', { name: '=?base64?disguise?=' }],
    ['tools/call', { name: '' }],
    ['resources/read', { uri: 'file:///a b' }],
  ])('of %s with %j agrees with itself, and its headers are safe', (method, params) => {
    const request = written(method, params)
    for (const value of Object.values(request.headers)) expect(value).toMatch(/^[\x20-\x7e]*$/)
    expect(readModernRequest(request)).toEqual({
      client: { name: 'tester', version: '1' },
      capabilities: {},
      logLevel: undefined,
    })
    expect(isModernRequest(request.headers, request.params)).toBe(true)
  })

  it.each([
    ['another method', { 'mcp-method': 'tools/list' }],
    ['no method', { 'mcp-method': undefined }],
    ['another name', { 'mcp-name': 'other' }],
    ['no name', { 'mcp-name': undefined }],
    ['a name encoded to another one', { 'mcp-name': `=?base64?${Buffer.from('other').toString('base64')}?=` }],
    ['another revision', { 'mcp-protocol-version': '2025-11-25' }],
    ['no revision', { 'mcp-protocol-version': undefined }],
  ])('whose headers name %s is refused', (_what, headers) => {
    const request = written('tools/call', { name: 'tool' })
    expect(codeOf(() => readModernRequest({ ...request, headers: { ...request.headers, ...headers } }))).toBe(
      'header-mismatch',
    )
  })

  it('with a name in its headers that its body does not have is refused', () => {
    const request = written('tools/list', {})
    expect(codeOf(() => readModernRequest({ ...request, headers: { ...request.headers, 'mcp-name': 'x' } }))).toBe(
      'header-mismatch',
    )
  })

  it('of a revision that is not spoken here is refused with those that are', () => {
    const request = written('tools/list', {})
    const meta = { ...metaOf(request.params), 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }
    const headers = { ...request.headers, 'mcp-protocol-version': '2099-01-01' }
    const refusal = errorOf(() => readModernRequest({ ...request, headers, params: { _meta: meta } }))
    expect(refusal).toMatchObject({
      code: 'protocol-unsupported',
      details: { supported: [modernRevision], requested: '2099-01-01' },
    })
  })

  it('without what its sender can do is refused', () => {
    const request = written('tools/list', {})
    const { 'io.modelcontextprotocol/clientCapabilities': _left, ...meta } = metaOf(request.params)
    expect(codeOf(() => readModernRequest({ ...request, params: { _meta: meta } }))).toBe('arguments-invalid')
  })

  it('keeps the caller’s own notes, and lets none of them pose as the protocol’s', () => {
    const forged = { 'io.modelcontextprotocol/protocolVersion': '1999-01-01', trace: 'abc' }
    const shaped = codec.shape({ name: 'x' }, { progressToken: 7, meta: forged })
    expect(shaped._meta).toMatchObject({
      'io.modelcontextprotocol/protocolVersion': modernRevision,
      trace: 'abc',
      progressToken: 7,
    })
  })
})

function metaOf({ _meta }: JsonObject): JsonObject {
  return isObject(_meta) ? _meta : {}
}

function errorOf(act: () => unknown): GatewayError | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

function codeOf(act: () => unknown): string | undefined {
  return errorOf(act)?.code
}
