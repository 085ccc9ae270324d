import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError, toGatewayError, withoutOwn } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { isObject, JsonError, parseExactPart, parseJson, type Scan } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { type Envelope, readEnvelope } from '../wire/envelope.ts'
import { legacyRevisions, sessionHeader, versionHeader } from '../wire/legacy.ts'
import { isModernRequest } from '../wire/modern.ts'
import { toErrorMessage } from '../wire/rpc-error.ts'
import { readBody } from './body.ts'
import { createLegacyEndpoint } from './legacy-endpoint.ts'
import { createListChanges } from './list-changes.ts'
import { createModernEndpoint } from './modern-endpoint.ts'
import { createPresenting } from './present.ts'
import { createReply } from './reply.ts'
import type { McpRequest } from './request.ts'
import { createMcpSessions } from './sessions.ts'

export type McpParts = {
  readonly gateway: Gateway
  /** The address of the gateway if `publicUrl` is not set. */
  readonly url: () => string
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** The principal of a request, its address, and the delivery of its answer. */
type Who = Pick<McpRequest, 'principal' | 'selector' | 'delivery'>

/** The MCP endpoints for agents: `/mcp`, `/mcp/t/<toolset>`, `/mcp/s/<server>`. */
export type Mcp = {
  handle(request: IncomingMessage, response: ServerResponse, who: Who): Promise<void>
  sessions(): number
  close(): void
}

export function createMcp(parts: McpParts): Mcp {
  const { gateway, url, clock, ids, log } = parts
  const changes = createListChanges({ catalog: gateway.catalog, events: gateway.events, clock })
  const sessions = createMcpSessions({ instance: gateway.instance, clock, ids })
  const presenting = createPresenting({
    baseUrl: () => gateway.config.current().listen.publicUrl ?? url(),
    hold: () => gateway.config.current().limits.hold,
    clock,
  })
  const legacy = createLegacyEndpoint({ gateway, sessions, changes, presenting })
  const modern = createModernEndpoint({ gateway, changes, presenting, clock, ids })
  const stopHearing = gateway.identity.onRevoked((principal) => {
    sessions.endOf(principal)
    presenting.endOf(principal)
    modern.endOf(principal)
  })

  async function post(http: IncomingMessage, response: ServerResponse, who: Who): Promise<void> {
    const body = await readBody(http, gateway.config.current().limits.request, who.delivery)
    gateway.identity.demandCurrent(who.principal)
    const reply = createReply({ request: http, response, delivery: who.delivery, clock })
    let envelope: Envelope | undefined
    try {
      const scan: Scan = { deepest: 0, seen: { keys: 0, number: undefined } }
      envelope = readMessage(body, scan)
      const params = paramsOf(body, envelope, scan)
      const request: McpRequest = { ...who, http, response, reply, body, envelope, params }
      if (isModernRequest(http.headers, params)) return await modern.handle(request)
      checkVersion(http)
      await legacy.handle(request)
    } catch (error) {
      const failure = toFailure(error)
      const id = envelope?.kind === 'request' ? envelope.id : 'null'
      reply.answer(toErrorMessage(id, failure), failure.entry.http)
    }
  }

  return {
    async handle(http, response, who) {
      try {
        if (http.method === 'POST') return await post(http, response, who)
        if (http.method === 'GET') return openStream(http, response, who)
        if (http.method === 'DELETE') return endSession(http, response, who)
        response.setHeader('allow', 'POST, GET, DELETE')
        throw new GatewayError('request-invalid', 'Only POST, GET and DELETE are supported here')
      } catch (error) {
        const failure = toFailure(error)
        if (response.destroyed) return
        // Otherwise Node would read the rest of the body, however long it is.
        if (!http.complete) response.setHeader('connection', 'close')
        const status = response.hasHeader('allow') ? 405 : failure.entry.http
        response.writeHead(status, { 'content-type': 'application/json' }).end(toErrorMessage('null', failure))
      }
    },
    sessions: () => sessions.count(),
    close() {
      stopHearing()
      modern.close()
      sessions.close()
      changes.close()
    },
  }

  function openStream(http: IncomingMessage, response: ServerResponse, { principal, selector, delivery }: Who): void {
    const id = http.headers[sessionHeader]
    if (typeof id !== 'string' || !http.headers.accept?.includes('text/event-stream')) {
      response.setHeader('allow', 'POST')
      throw new GatewayError('request-invalid', 'A stream requires an MCP session and `Accept: text/event-stream`')
    }
    checkVersion(http)
    sessions.get(id, principal, selector).openStream(response, delivery, principal)
  }

  function endSession(http: IncomingMessage, response: ServerResponse, { principal, selector }: Who): void {
    const id = http.headers[sessionHeader]
    if (typeof id !== 'string') throw new GatewayError('request-invalid', 'The header Mcp-Session-Id is missing')
    checkVersion(http)
    sessions.end(sessions.get(id, principal, selector))
    response.writeHead(204).end()
  }

  function toFailure(error: unknown): GatewayError {
    const failure = toGatewayError(error)
    if (withoutOwn(failure) !== failure)
      log.error({ error: failure.message, stack: failure.stack }, 'unhandled error in a request')
    return failure
  }
}

function readMessage(body: Buffer, scan: Scan): Envelope {
  try {
    return readEnvelope(body, scan)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const batch = body.toString('latin1', 0, 64).trimStart().startsWith('[')
    const message = batch
      ? 'Batches are not taken: send one message at a time'
      : `The body is not a JSON-RPC message: ${error.message}`
    throw new GatewayError('request-invalid', message, isJson(body) ? {} : { parse: true })
  }
}

function isJson(body: Buffer): boolean {
  try {
    parseJson(body)
    return true
  } catch (error) {
    return error instanceof JsonError && error.fault === 'too-deep'
  }
}

function paramsOf(body: Buffer, envelope: Envelope, scan: Scan): JsonObject {
  if (envelope.kind === 'result' || envelope.kind === 'error' || !envelope.params) return {}
  try {
    const { start, end } = envelope.params
    // A notification runs nothing. The id in a cancellation may be any number.
    const isRequest = envelope.kind === 'request'
    const params = isRequest ? parseExactPart(body, envelope.params, scan) : parseJson(body.subarray(start, end))
    if (isObject(params)) return params
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    if (error.fault === 'inexact') throw new GatewayError('json-inexact', error.message)
    throw new GatewayError('request-invalid', `The params are invalid: ${error.message}`)
  }
  throw new GatewayError('request-invalid', 'The params must be an object')
}

/** Clients of the older era may omit the header. If they send it, the revision must be supported. */
function checkVersion(http: IncomingMessage): void {
  const version = http.headers[versionHeader]
  if (version === undefined || (typeof version === 'string' && legacyRevisions.includes(version))) return
  throw new GatewayError('protocol-unsupported', 'This protocol revision is not supported', {
    supported: [...legacyRevisions],
    requested: String(version).slice(0, 64),
  })
}
