import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StandardHandleResult } from '@orpc/server/standard'
import { isChange } from '../contract/access.ts'
import { api as contract } from '../contract/api.ts'
import { GatewayError, toGatewayError, withoutOwn } from '../contract/errors.ts'
import { type PrincipalKey, toPrincipalKey } from '../contract/principal.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { authorise, toEndpointMeta } from './api-access.ts'
import { liftDefinition, readBody } from './api-body.ts'
import { toFailure, toRetryAfter, toWireBody, toWireError } from './api-errors.ts'
import { createApiHandler, sendAnswer } from './api-handler.ts'
import { toOpenApi } from './api-openapi.ts'
import { type ApiContext, createRouter } from './api-router.ts'
import type { SignInCookie } from './cookie.ts'
import { createEventStreams } from './events.ts'
import { sendExport } from './routes/audit.ts'
import type { SignInContext } from './routes/context.ts'
import { maySeeEvent } from './routes/events.ts'
import { createSignInRoutes } from './routes/people.ts'

export type Api = {
  /** Answers requests below `/api`; returns false for other paths. The caller has authenticated the request. */
  handle(request: IncomingMessage, response: ServerResponse, who: Who): Promise<boolean>
  /** Handles sign-in, the only API request without authentication. */
  admit(request: IncomingMessage, response: ServerResponse, address: string): Promise<void>
  /** Ends event streams. */
  close(): void
}

type Who = Pick<ApiContext, 'principal' | 'delivery'>

export type ApiParts = {
  readonly gateway: Gateway
  readonly url: () => string
  readonly cookie: SignInCookie
  readonly clock?: Clock
  readonly log?: Log
}

const prefix = '/api'
/** Maximum open requests of one principal, until their answers are read. */
const mostRequests = 256

const mostBytes = 1_048_576
/** Maximum body of a sign-in. Without a principal there is no limit to count it against, so it is small. */
const mostOfStranger = 16_384

/** The REST API. It checks access and calls the gateway; all other decisions are made there. */
export function createApi({ gateway, url, cookie, clock = systemClock, log = silentLog }: ApiParts): Api {
  const streams = createEventStreams({
    log: gateway.eventLog,
    clock,
    maySee: (principal, event) => maySeeEvent(gateway, principal, event),
  })
  const stopHearing = gateway.identity.onRevoked(streams.endOf)
  const underWay = new Map<PrincipalKey, number>()
  /** The OpenAPI document as bytes, created once and shared by all answers. */
  let description: Promise<Buffer> | undefined
  const handler = createApiHandler<ApiContext>(createRouter(gateway), {
    clientInterceptors: [
      ({ procedure, context, next }) => {
        const meta = toEndpointMeta(procedure['~orpc'].meta)
        // Check again: the principal may have been removed while the body was read.
        gateway.identity.demandCurrent(context.principal)
        authorise(context.principal, meta)
        if (isChange(context.response.req.method, meta)) gateway.admitChange(context.principal)
        return next()
      },
    ],
    interceptors: [({ context, next }) => delivering(context, next)],
    customErrorResponseBodyEncoder: toBody,
  })
  const signInHandler = createApiHandler<SignInContext>(createSignInRoutes(gateway), {
    interceptors: [({ context, next }) => translating(context.response, next)],
    customErrorResponseBodyEncoder: toBody,
  })

  function leave(key: PrincipalKey): void {
    const left = (underWay.get(key) ?? 1) - 1
    if (left > 0) underWay.set(key, left)
    else underWay.delete(key)
  }

  function toBody(error: Parameters<typeof toWireBody>[0]): unknown {
    return gateway.masking.value(toWireBody(error))
  }

  /** Settles right after the framework has written the answer; the framework reports the end only after the client has read it. */
  async function delivering(
    { response, delivery, sent }: ApiContext,
    next: () => Promise<StandardHandleResult>,
  ): Promise<StandardHandleResult> {
    try {
      return await translating(response, async () =>
        sendAnswer(await next(), { response, result: sent.result, take: delivery.takeAnswer }),
      )
    } finally {
      setImmediate(delivery.settle)
    }
  }

  async function translating<Result>(response: ServerResponse, next: () => Promise<Result>): Promise<Result> {
    try {
      return await next()
    } catch (error) {
      report(log, error)
      const retryAfter = toRetryAfter(toFailure(error))
      if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
      throw toWireError(error)
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse, who: Who): Promise<void> {
    const { principal, delivery } = who
    if (pathOf(request) === `${prefix}/openapi.json` && request.method === 'GET') {
      description ??= toOpenApi(gateway.version).then((text) => Buffer.from(JSON.stringify(text)))
      const bytes = await description
      delivery.takeAnswer(bytes.length)
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
      return void response.end(bytes)
    }
    if (pathOf(request) === `${prefix}/audit/export` && request.method === 'GET') {
      authorise(principal, contract.audit.export['~orpc'].meta)
      return sendExport(gateway, new URL(request.url ?? '', 'http://gateway').searchParams, { response, delivery })
    }
    if (pathOf(request) === `${prefix}/events` && request.method === 'GET') {
      authorise(principal, contract.events.listen['~orpc'].meta)
      return streams.open(request, response, who)
    }
    const body = liftDefinition(pathOf(request), await readBody(request, { mostBytes, take: delivery.takeRequest }))
    const context: ApiContext = {
      ...who,
      response,
      sent: {},
      cookie,
      url: gateway.config.current().listen.publicUrl ?? url(),
    }
    const { matched } = await handler.handle(Object.assign(request, { body }), response, { prefix, context })
    if (!matched && !response.headersSent)
      throw new GatewayError('not-found', `No endpoint: ${request.method} ${pathOf(request)}`)
  }

  return {
    async admit(request, response, address) {
      response.setHeader('cache-control', 'no-store')
      try {
        const body = await readBody(request, { mostBytes: mostOfStranger })
        const context: SignInContext = { response, cookie, address }
        await signInHandler.handle(Object.assign(request, { body }), response, { prefix, context })
      } catch (error) {
        report(log, error)
        sendError(response, toGatewayError(error), gateway.masking)
      }
    },
    async handle(request, response, who) {
      const path = pathOf(request)
      if (path !== prefix && !path.startsWith(`${prefix}/`)) return false
      response.setHeader('cache-control', 'no-store')
      const key = toPrincipalKey(who.principal)
      const others = underWay.get(key) ?? 0
      underWay.set(key, others + 1)
      try {
        if (others >= mostRequests) throw tooMany()
        await answer(request, response, who)
      } catch (error) {
        report(log, error)
        sendError(response, toGatewayError(error), gateway.masking)
      } finally {
        if (response.closed) leave(key)
        else response.once('close', () => leave(key))
      }
      return true
    },
    close() {
      stopHearing()
      streams.close()
    },
  }
}

function tooMany(): GatewayError {
  const message = `This principal has more than ${mostRequests} open requests`
  return new GatewayError('limit-exceeded', message, { limit: 'requests', most: mostRequests, retryAfter: 1 })
}

function report(log: Log, error: unknown): void {
  const failure = toFailure(error)
  if (withoutOwn(failure) === failure) return
  log.error({ error: failure.message, stack: failure.stack, cause: String(failure.cause) }, 'a request failed')
}

function sendError(response: ServerResponse, error: GatewayError, masking: Gateway['masking']): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  // The unread rest of the body must not be parsed as the next request.
  if (error.code === 'request-too-large' || error.code === 'limit-exceeded') response.setHeader('connection', 'close')
  const retryAfter = toRetryAfter(error)
  if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
  const wire = toWireError(error)
  sendJson(response, wire.status, masking.value(toWireBody(wire)))
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/'
}
