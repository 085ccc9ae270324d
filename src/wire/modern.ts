import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, createAnswer, memberText, toResultAnswer } from './answer.ts'
import { isLogLevel, type LogLevel, type Questions, usualLevel } from './caller.ts'
import {
  capabilitiesKey,
  type GatewayFacts,
  gatewayName,
  type Implementation,
  type ServerCodec,
  type ServerFacts,
} from './codec.ts'
import { fromHeaderValue, toHeaderValue } from './header-value.ts'
import { errorFacts, legacyResourceNotFound, toImplementation, versionHeader } from './legacy.ts'
import { addMembers, dropMember } from './splice.ts'

/** The stateless revision: every request contains its protocol revision and the capabilities of its sender. */
const revision = '2026-07-28'
export const modernRevision: string = revision

const prefix = 'io.modelcontextprotocol/'
const keys = {
  version: `${prefix}protocolVersion`,
  capabilities: capabilitiesKey,
  client: `${prefix}clientInfo`,
  logLevel: `${prefix}logLevel`,
  server: `${prefix}serverInfo`,
}

const methodHeader = 'mcp-method'
const nameHeader = 'mcp-name'

/** The parameter that the header `Mcp-Name` repeats. */
const named: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** For servers: `server/discover`, then requests that are complete in themselves. */
export function createModernCodec(client: Implementation): ServerCodec {
  const envelope = { [keys.version]: revision, [keys.capabilities]: {}, [keys.client]: { ...client } }
  return {
    era: 'modern',
    cancelsByClosing: true,
    liveness: 'tools/list',
    shape(params, own) {
      const { progressToken, caller } = own
      return {
        ...params,
        _meta: {
          ...own.meta,
          ...envelope,
          ...(caller && { [keys.capabilities]: caller.capabilities }),
          ...(caller?.logLevel && { [keys.logLevel]: caller.logLevel === 'any' ? usualLevel : caller.logLevel }),
          ...(progressToken !== undefined && { progressToken }),
        },
      }
    },
    headers: toModernHeaders,
    async open(peer, options) {
      const answer = await peer.request('server/discover', {}, options)
      // A server that refuses this revision but lists it as supported is asked once more.
      return toFacts(speaksAfterAll(answer) ? await peer.request('server/discover', {}, options) : answer)
    },
  }
}

function speaksAfterAll(answer: Answer): boolean {
  if (answer.kind === 'result' || memberText(answer, 'code') !== '-32022') return false
  const { data } = answer.value()
  return isObject(data) && Array.isArray(data.supported) && data.supported.includes(revision)
}

/** The headers that repeat parts of a stateless message, so that proxies need not read the body. */
export function toModernHeaders(
  method: string | undefined,
  params: JsonObject,
  mirrored?: Readonly<Record<string, string>>,
): Record<string, string> {
  if (method === undefined) return { [versionHeader]: revision }
  const name = nameOf(method, params)
  return {
    [versionHeader]: revision,
    [methodHeader]: method,
    ...(name === undefined ? {} : { [nameHeader]: toHeaderValue(name) }),
    ...mirrored,
  }
}

/** The revision in the body of a message. Only messages of this era have it. */
export function findNamedRevision(params: JsonObject): unknown {
  return isObject(params._meta) ? params._meta[keys.version] : undefined
}

/** The members of `_meta` in requests of the gateway in this era. */
export function toModernMeta(client: Implementation): JsonObject {
  return { [keys.version]: revision, [keys.capabilities]: {}, [keys.client]: { ...client } }
}

function toFacts(answer: Answer): ServerFacts {
  if (answer.kind === 'error') {
    throw new GatewayError('server-refused', 'The server refused `server/discover`', errorFacts(answer))
  }
  const { supportedVersions, capabilities, instructions, _meta } = answer.value()
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(revision)) {
    throw new GatewayError('server-broken', 'The server does not list the stateless revision')
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

/** The sender of a stateless request. */
export type ModernCaller = {
  readonly client: Implementation | undefined
  readonly capabilities: JsonObject
  readonly logLevel: LogLevel | undefined
}

/** Whether a request from an agent is of this era. */
export function isModernRequest(headers: IncomingHttpHeaders, params: JsonObject): boolean {
  const meta = params._meta
  return headers[versionHeader] === revision || (isObject(meta) && keys.version in meta)
}

/** Headers and body must be equal. Otherwise a proxy could decide on other values than the gateway. */
export function readModernRequest(request: {
  headers: IncomingHttpHeaders | undefined
  method: string
  params: JsonObject
}): ModernCaller {
  const { headers, method, params } = request
  const meta = isObject(params._meta) ? params._meta : {}
  const version = meta[keys.version]
  if (version === undefined) throw incomplete(keys.version)
  if (headers) checkHeaders(headers, method, params, version)
  if (version !== revision) throw unsupported(version)
  const capabilities = meta[keys.capabilities]
  if (!isObject(capabilities)) throw incomplete(keys.capabilities)
  const logLevel = meta[keys.logLevel]
  return {
    client: toImplementation(meta[keys.client]),
    capabilities,
    logLevel: isLogLevel(logLevel) ? logLevel : undefined,
  }
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

function incomplete(key: string): GatewayError {
  return new GatewayError('arguments-invalid', `The request lacks ${key} in _meta`)
}

function mismatch(header: string): GatewayError {
  return new GatewayError('header-mismatch', `The header ${header} is missing or differs from the request's body`)
}

function unsupported(requested: unknown): GatewayError {
  const named = typeof requested === 'string' ? requested : 'none'
  return new GatewayError('protocol-unsupported', 'This protocol revision is not supported', {
    supported: [revision],
    requested: named,
  })
}

/** How long an agent may cache a list. Always private, because views differ between principals. */
export type CacheHint = { readonly ttlMs: number }

export function toDiscoverResult(facts: GatewayFacts & CacheHint): JsonObject {
  return {
    resultType: 'complete',
    supportedVersions: [revision],
    capabilities: facts.capabilities,
    ...(facts.instructions !== undefined && { instructions: facts.instructions }),
    ttlMs: facts.ttlMs,
    cacheScope: 'private',
    _meta: serverMeta(facts.version),
  }
}

export function serverMeta(version: string): JsonObject {
  return { [keys.server]: { name: gatewayName, title: 'Sallyport', version } }
}

/** The error code of the older era for a missing resource is `invalid params` in this era. */
function toModernError(answer: Answer): Answer {
  if (memberText(answer, 'code') !== String(legacyResourceNotFound)) return answer
  return createAnswer('error', Buffer.from(JSON.stringify({ ...answer.value(), code: -32602 })))
}

/** The capabilities that a server of this era requires, if it refused a call because they were not declared. */
export function lackingIn(answer: Answer): JsonObject | undefined {
  if (answer.kind !== 'error' || memberText(answer, 'code') !== '-32021') return undefined
  const { data } = answer.value()
  return isObject(data) && isObject(data.requiredCapabilities) ? data.requiredCapabilities : {}
}

/** A result in the form of this era: marked as complete unless it says otherwise, with cache hints for lists. */
export function toModernResult(answer: Answer, hint?: CacheHint): Answer {
  if (answer.kind === 'error') return toModernError(answer)
  const added: string[] = []
  if (memberText(answer, 'resultType') === undefined) added.push('"resultType":"complete"')
  if (!hint) return addMembers(answer, added)
  if (memberText(answer, 'ttlMs') === undefined) added.push(`"ttlMs":${hint.ttlMs}`)
  // Answers are for one caller, so they are never marked as public, even if the server does so.
  const shared = memberText(answer, 'cacheScope') !== undefined
  return addMembers(shared ? dropMember(answer, 'cacheScope') : answer, [...added, '"cacheScope":"private"'])
}

/** The answer to a request that needs replies of its caller. */
export function toInputRequired(questions: Questions, state: string): Answer {
  return toResultAnswer({ resultType: 'input_required', inputRequests: toPlain(questions), requestState: state })
}

function toPlain(questions: Questions): JsonObject {
  return Object.fromEntries(Object.entries(questions).map(([key, { method, params }]) => [key, { method, params }]))
}
