import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, memberText } from './answer.ts'
import { gatewayName, type Implementation, type ServerCodec, type ServerFacts } from './codec.ts'
import { errorFacts, legacyResourceNotFound, toImplementation, versionHeader } from './legacy.ts'
import { addMembers } from './splice.ts'

/** The stateless revision: every request says which protocol it speaks and what its sender can do. */
const revision = '2026-07-28'
export const modernRevision: string = revision

const prefix = 'io.modelcontextprotocol/'
const keys = {
  version: `${prefix}protocolVersion`,
  capabilities: `${prefix}clientCapabilities`,
  client: `${prefix}clientInfo`,
  server: `${prefix}serverInfo`,
  subscription: `${prefix}subscriptionId`,
}
export const subscriptionKey = keys.subscription

const methodHeader = 'mcp-method'
const nameHeader = 'mcp-name'

/** The parameter that `Mcp-Name` repeats. */
const named: Readonly<Record<string, string>> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

/** Towards servers: `server/discover`, then requests that carry everything themselves. */
export function createModernCodec(client: Implementation, clientCapabilities: JsonObject): ServerCodec {
  const envelope = { [keys.version]: revision, [keys.capabilities]: clientCapabilities, [keys.client]: { ...client } }
  return {
    era: 'modern',
    cancelsByClosing: true,
    liveness: 'tools/list',
    shape(params, own) {
      const token: JsonObject = own.progressToken === undefined ? {} : { progressToken: own.progressToken }
      return { ...params, _meta: { ...own.meta, ...envelope, ...token } }
    },
    headers(method, params) {
      if (method === undefined) return { [versionHeader]: revision }
      const name = nameOf(method, params)
      return {
        [versionHeader]: revision,
        [methodHeader]: method,
        ...(name === undefined ? {} : { [nameHeader]: toHeaderValue(name) }),
      }
    },
    async open(peer, options) {
      const answer = await peer.request('server/discover', {}, options)
      return toFacts(answer)
    },
  }
}

function toFacts(answer: Answer): ServerFacts {
  if (answer.kind === 'error') {
    throw new GatewayError('server-refused', 'The server refused `server/discover`', errorFacts(answer))
  }
  const { supportedVersions, capabilities, instructions, _meta } = answer.value()
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(revision)) {
    throw new GatewayError('server-broken', 'The server does not list the stateless revision it was asked in')
  }
  return {
    era: 'modern',
    revision,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(_meta) ? toImplementation(_meta[keys.server]) : undefined,
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

function nameOf(method: string, params: JsonObject): string | undefined {
  const parameter = named[method]
  const value = parameter === undefined ? undefined : params[parameter]
  return typeof value === 'string' ? value : undefined
}

/** Header values are visible ASCII without surrounding blanks; everything else travels in base 64. */
function toHeaderValue(text: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?')) return text
  return `=?base64?${Buffer.from(text).toString('base64')}?=`
}

function fromHeaderValue(value: string): string {
  const encoded = /^=\?base64\?([A-Za-z0-9+/=]*)\?=$/.exec(value)
  return encoded?.[1] === undefined ? value : Buffer.from(encoded[1], 'base64').toString('utf8')
}

/** What a stateless request says of its sender. */
export type ModernCaller = { readonly client: Implementation | undefined; readonly capabilities: JsonObject }

/** Whether a request from an agent is of this era at all. */
export function isModernRequest(headers: IncomingHttpHeaders, params: JsonObject): boolean {
  const meta = params._meta
  return headers[versionHeader] === revision || (isObject(meta) && keys.version in meta)
}

/** Headers and body must agree, or something between us and the agent decides on other facts than we do. */
export function readModernRequest(request: {
  headers: IncomingHttpHeaders | undefined
  method: string
  params: JsonObject
}): ModernCaller {
  const { headers, method, params } = request
  const meta = isObject(params._meta) ? params._meta : {}
  const version = meta[keys.version]
  if (headers) checkHeaders(headers, method, params, version)
  if (version !== revision) throw unsupported(version ?? headers?.[versionHeader])
  const capabilities = meta[keys.capabilities]
  if (!isObject(capabilities)) {
    throw new GatewayError('arguments-invalid', `The request lacks ${keys.capabilities} in _meta`)
  }
  return { client: toImplementation(meta[keys.client]), capabilities }
}

function checkHeaders(headers: IncomingHttpHeaders, method: string, params: JsonObject, version: unknown): void {
  const claimed = headers[versionHeader]
  if (claimed !== undefined && claimed !== revision && claimed === version) throw unsupported(claimed)
  if (claimed !== version) throw mismatch('MCP-Protocol-Version')
  if (headers[methodHeader] !== method) throw mismatch('Mcp-Method')
  const name = nameOf(method, params)
  const header = headers[nameHeader]
  if (name === undefined && header === undefined) return
  if (typeof header !== 'string' || fromHeaderValue(header) !== name) throw mismatch('Mcp-Name')
}

function mismatch(header: string): GatewayError {
  return new GatewayError('header-mismatch', `The header ${header} is missing or differs from the request's body`)
}

function unsupported(requested: unknown): GatewayError {
  const named = typeof requested === 'string' ? requested : 'none'
  return new GatewayError('protocol-unsupported', 'This protocol revision is not spoken here', {
    supported: [revision],
    requested: named,
  })
}

/** How long an agent may keep a list; always private, because views differ between principals. */
export type CacheHint = { readonly ttlMs: number }

export function toDiscoverResult(facts: { capabilities: JsonObject; version: string; ttlMs: number }): JsonObject {
  return {
    resultType: 'complete',
    supportedVersions: [revision],
    capabilities: facts.capabilities,
    ttlMs: facts.ttlMs,
    cacheScope: 'private',
    _meta: serverMeta(facts.version),
  }
}

export function serverMeta(version: string): JsonObject {
  return { [keys.server]: { name: gatewayName, title: 'Sallyport', version } }
}

/** The older era's number for a resource that is not there is an ordinary wrong parameter here. */
function toModernError(answer: Answer): Buffer {
  if (memberText(answer, 'code') !== String(legacyResourceNotFound)) return answer.bytes
  return Buffer.from(JSON.stringify({ ...answer.value(), code: -32602 }))
}

/** A result as this era writes it: complete unless it says otherwise, and lists with their hints. */
export function toModernResult(answer: Answer, hint?: CacheHint): Buffer {
  if (answer.kind === 'error') return toModernError(answer)
  const added: string[] = []
  if (memberText(answer, 'resultType') === undefined) added.push('"resultType":"complete"')
  if (hint && memberText(answer, 'ttlMs') === undefined) added.push(`"ttlMs":${hint.ttlMs},"cacheScope":"private"`)
  return addMembers(answer, added)
}
