import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, createAnswer, memberText } from './answer.ts'
import type { Question } from './caller.ts'
import {
  capabilitiesKey,
  type GatewayFacts,
  gatewayName,
  type Implementation,
  type ServerCodec,
  type ServerFacts,
  tasksExtension,
} from './codec.ts'
import { dropMember } from './splice.ts'

/** The revisions with MCP sessions, newest first. */
const revisions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
type Revision = (typeof revisions)[number]

export const newestLegacy: string = revisions[0]
export const legacyRevisions: readonly string[] = revisions
export const versionHeader = 'mcp-protocol-version'
export const sessionHeader = 'mcp-session-id'

function isRevision(value: unknown): value is Revision {
  return revisions.some((revision) => revision === value)
}

/**
 * One link serves many callers, so it declares everything that a caller may support. A caller that cannot answer a question
 * refuses it. Changes of roots are not declared, because they belong to one caller only.
 */
const offeredToServers = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} }

/** For servers: `initialize`, then plain requests. */
export function createLegacyCodec(client: Implementation): ServerCodec {
  let revision: string | undefined
  return {
    era: 'legacy',
    cancelsByClosing: false,
    liveness: 'ping',
    shape(params, own) {
      const { progressToken, meta } = own
      if (progressToken === undefined && meta === undefined) return params
      // This era declares capabilities once for a connection, and not with each request.
      const { [capabilitiesKey]: _declared, ...passed } = meta ?? {}
      return { ...params, _meta: { ...passed, ...(progressToken !== undefined && { progressToken }) } }
    },
    headers(): Record<string, string> {
      return revision === undefined ? {} : { [versionHeader]: revision }
    },
    async open(peer, options) {
      revision = undefined
      const params = { protocolVersion: newestLegacy, capabilities: offeredToServers, clientInfo: { ...client } }
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
    throw new GatewayError('server-broken', 'The server uses an unknown protocol revision')
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

/** The error code of this era for a resource that does not exist. */
export const legacyResourceNotFound = -32002

/** For agents: the revision that `initialize` agrees on. */
export function negotiateLegacy(requested: unknown): string {
  return isRevision(requested) ? requested : newestLegacy
}

export function toInitializeResult(facts: GatewayFacts & { revision: string }): JsonObject {
  return {
    protocolVersion: facts.revision,
    capabilities: facts.capabilities,
    serverInfo: { name: gatewayName, title: 'Sallyport', version: facts.version },
    ...(facts.instructions !== undefined && { instructions: facts.instructions }),
  }
}

/** A result in the form of this era, without the members that the newer era adds. */
export function toLegacyResult(answer: Answer): Answer {
  if (answer.kind === 'error') return toLegacyError(answer)
  return memberText(answer, 'resultType') === undefined ? answer : dropMember(answer, 'resultType')
}

/** In the newer era, `invalid params` with only a URI in its data means that the resource does not exist. */
function toLegacyError(answer: Answer): Answer {
  if (memberText(answer, 'code') !== '-32602') return answer
  const { data } = answer.value()
  if (!isObject(data) || typeof data.uri !== 'string' || Object.keys(data).length > 1) return answer
  return createAnswer('error', Buffer.from(JSON.stringify({ ...answer.value(), code: legacyResourceNotFound })))
}

/** The capabilities of a client of this era in the form of the newer era. Elicitation without a mode means forms. */
export function toCapabilities(declared: unknown): JsonObject {
  const { elicitation, sampling, roots, extensions } = isObject(declared) ? declared : {}
  const { [tasksExtension]: _newer, ...usable } = isObject(extensions) ? extensions : {}
  const plain = isObject(elicitation) && Object.keys(elicitation).length === 0
  return {
    ...(isObject(elicitation) && { elicitation: plain ? { form: {} } : elicitation }),
    ...(isObject(sampling) && { sampling }),
    ...(isObject(roots) && { roots: {} }),
    ...(Object.keys(usable).length > 0 && { extensions: usable }),
  }
}

/** A question in the form of this era, which requires an id for an elicitation at an address. */
export function toLegacyQuestion({ method, params }: Question, id: string): Question {
  const numbered = method === 'elicitation/create' && params.mode === 'url' && params.elicitationId === undefined
  return { method, params: numbered ? { ...params, elicitationId: id } : params }
}
