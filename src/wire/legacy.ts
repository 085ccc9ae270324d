import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, memberText } from './answer.ts'
import { gatewayName, type Implementation, type ServerCodec, type ServerFacts } from './codec.ts'
import { dropMember } from './splice.ts'

/** The revisions with sessions, newest first. */
const revisions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
type Revision = (typeof revisions)[number]

export const newestLegacy: string = revisions[0]
export const legacyRevisions: readonly string[] = revisions
export const versionHeader = 'mcp-protocol-version'
export const sessionHeader = 'mcp-session-id'

function isRevision(value: unknown): value is Revision {
  return revisions.some((revision) => revision === value)
}

/** Towards servers: `initialize`, then plain requests. */
export function createLegacyCodec(client: Implementation, clientCapabilities: JsonObject): ServerCodec {
  let revision: string | undefined
  return {
    era: 'legacy',
    cancelsByClosing: false,
    liveness: 'ping',
    shape(params, own) {
      if (own.progressToken === undefined && own.meta === undefined) return params
      const token: JsonObject = own.progressToken === undefined ? {} : { progressToken: own.progressToken }
      return { ...params, _meta: { ...own.meta, ...token } }
    },
    headers(): Record<string, string> {
      return revision === undefined ? {} : { [versionHeader]: revision }
    },
    async open(peer, options) {
      revision = undefined
      const params = { protocolVersion: newestLegacy, capabilities: clientCapabilities, clientInfo: { ...client } }
      const answer = await peer.request('initialize', params, options)
      const facts = toFacts(answer)
      revision = facts.revision
      peer.notify('notifications/initialized', {})
      return facts
    },
  }
}

function toFacts(answer: Answer): ServerFacts {
  if (answer.kind === 'error')
    throw new GatewayError('server-refused', 'The server refused `initialize`', errorFacts(answer))
  const { protocolVersion, capabilities, serverInfo, instructions } = answer.value()
  if (!isRevision(protocolVersion)) {
    throw new GatewayError('server-broken', 'The server speaks a protocol revision that is not known here')
  }
  return {
    era: 'legacy',
    revision: protocolVersion,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: toImplementation(serverInfo),
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

export function toImplementation(value: unknown): Implementation | undefined {
  if (!isObject(value) || typeof value.name !== 'string') return undefined
  return { name: value.name, version: typeof value.version === 'string' ? value.version : '' }
}

export function errorFacts(answer: Answer): { rpcCode?: number } {
  const { code } = answer.value()
  return typeof code === 'number' ? { rpcCode: code } : {}
}

/** This era has a number of its own for a resource that is not there. */
export const legacyResourceNotFound = -32002

/** Towards agents: the revision that an `initialize` ends up with. */
export function negotiateLegacy(requested: unknown): string {
  return isRevision(requested) ? requested : newestLegacy
}

export function toInitializeResult(facts: { revision: string; capabilities: JsonObject; version: string }): JsonObject {
  return {
    protocolVersion: facts.revision,
    capabilities: facts.capabilities,
    serverInfo: { name: gatewayName, title: 'Sallyport', version: facts.version },
  }
}

/** A result as this era writes it: what the other era adds at the top is taken off. */
export function toLegacyResult(answer: Answer): Buffer {
  if (answer.kind === 'error' || memberText(answer, 'resultType') === undefined) return answer.bytes
  return dropMember(answer, 'resultType')
}
