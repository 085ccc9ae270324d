import { readFile } from 'node:fs/promises'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { ViewSelector } from '../catalog/catalog.ts'
import type { Listen } from '../contract/config.ts'
import { GatewayError, toErrorBody, toGatewayError, withoutOwn } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { findPublicRoute, type PublicRouteName } from '../contract/public-routes.ts'
import { toSystemReason } from '../contract/system-error.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { toBearer } from '../identity/identity.ts'
import type { Clock } from '../lib/clock.ts'
import { createDelivery, type Delivery, unboundedAccount } from '../lib/delivery.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { challengeForm } from '../lib/proof.ts'
import { createMcp } from '../mcp/mcp.ts'
import { createApi } from './api.ts'
import { createSignInCookie, isSecure } from './cookie.ts'
import { createHostCheck, toClientAddress } from './hosts.ts'
import { valuesOf } from './raw-headers.ts'
import { demandOwnPage, demandSameOrigin } from './same-origin.ts'
import { createSetupPage } from './setup-page.ts'
import { createWeb } from './web.ts'

export type Listener = {
  readonly url: string
  /** Milliseconds since the last request ended; undefined while a request is open. */
  quietFor(): number | undefined
  /** Accepts no new requests and ends streams; open requests still get their answers. */
  stop(): void
  /** Waits a moment for the last answers to be sent, then closes all sockets. */
  close(): Promise<void>
}

export type ListenerParts = {
  readonly gateway: Gateway
  readonly listen: Listen
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/**
 * Timeouts for requests, checked every few seconds. The timeout for headers is longer than for an idle socket: proxies open
 * sockets before they have a request, and must not find them closed.
 */
function toPatience({ keepAlive }: Listen) {
  const headersTimeout = keepAlive + 5000
  const requestTimeout = Math.max(120_000, headersTimeout)
  return { keepAliveTimeout: keepAlive, headersTimeout, requestTimeout, connectionsCheckingInterval: 5000 }
}

const drainMs = 3000
/** Maximum unanswered requests on one socket. Each uses some kilobytes before it is authenticated. */
const mostPipelined = 256

/** The HTTP listener. It checks hosts, origins and authentication before MCP or the API gets the request. */
export async function startListener(parts: ListenerParts): Promise<Listener> {
  const { gateway, listen, log } = parts
  let port = listen.port
  let closing = false
  let underWay = 0
  let lastEnded = parts.clock.monotonic()
  const closed = Promise.withResolvers<void>()
  /** For each socket, the number of its requests that were received and not answered yet. */
  const pipelined = new WeakMap<object, number>()
  const checkHost = createHostCheck(listen, () => port)
  const mcp = createMcp({ ...parts, url: () => url })
  const secure = isSecure(listen)
  const cookie = createSignInCookie(listen, gateway.id)
  const api = createApi({ gateway, url: () => url, cookie, clock: parts.clock, log })
  const setup = createSetupPage(gateway.identity.setup, signInFirst)
  const web = createWeb()

  const server = await createServer(listen, (request, response) => {
    const { socket } = request
    const waiting = (pipelined.get(socket) ?? 0) + 1
    pipelined.set(socket, waiting)
    underWay += 1
    response.on('close', () => {
      pipelined.set(socket, (pipelined.get(socket) ?? 1) - 1)
      underWay -= 1
      lastEnded = parts.clock.monotonic()
      closeWhenDone()
    })
    if (waiting > mostPipelined) return void socket.destroy()
    serve(request, response).catch((error: unknown) => refuse(request, response, error))
  })
  server.maxHeadersCount = 100
  await bind(server, listen)
  const address = server.address()
  port = typeof address === 'object' && address ? address.port : listen.port
  const url = `${listen.tls ? 'https' : 'http'}://${toUrlHost(listen.host)}:${port}`

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('x-content-type-options', 'nosniff')
    const host = checkHost(request)
    const path = toPath(request.url)
    const selector = toSelector(path)
    if (selector) {
      const principal = whileOpen(fromToken(request))
      return deliver(response, principal, (delivery) =>
        mcp.handle(request, response, { principal, selector, delivery }),
      )
    }
    const open = findPublicRoute(request.method, path)
    if (open) return deliver(response, undefined, () => serveOpen[open]({ request, response, host, path }))
    const principal = whileOpen(await fromTokenOrCookie(request, host))
    if (await deliver(response, principal, (delivery) => api.handle(request, response, { principal, delivery }))) return
    throw new GatewayError('not-found', 'This address does not exist')
  }

  /** Routes without authentication; the table in the contract lists them. */
  const serveOpen: Readonly<Record<PublicRouteName, (visit: Visit) => Promise<void> | void>> = {
    live: ({ response }) => sendJson(response, 200, { status: 'ok' }),
    ready: ({ response }) => ready(response),
    proof: ({ request, response }) => prove(request, response),
    signIn: ({ request, response, host }) => admit(request, response, host),
    setupState: ({ response }) => sendJson(response, 200, { needed: gateway.identity.setup.needed() }),
    setup: ({ request, response, host }) => setup.handle(request, response, () => demandOwnPage(request, host, secure)),
    pages: ({ request, response }) => web.sendPage(request, response),
    // Loaded when it is needed: few people open it, and its texts cost memory.
    errorDocs: async ({ response }) => (await import('./errors-page.ts')).sendErrorsPage(response),
    files: ({ request, response, path }) => web.sendFile(request, response, path),
  }

  /** Counts bytes buffered for the principal until the client has read its answer. */
  async function deliver<Done>(
    response: ServerResponse,
    principal: Principal | undefined,
    work: (delivery: Delivery) => Promise<Done> | Done,
  ): Promise<Done> {
    const known = principal && { principal: toPrincipalKey(principal) }
    const delivery = createDelivery({
      response,
      account: principal ? gateway.calls.accountOf(principal) : unboundedAccount,
      clock: parts.clock,
      patience: gateway.config.current().limits.drain,
      onStalled: () => log.warn({ ...known }, 'closed a socket: the client does not read'),
    })
    try {
      return await work(delivery)
    } finally {
      delivery.settle()
    }
  }

  function whileOpen(principal: Principal): Principal {
    if (closing) throw new GatewayError('shutting-down', 'The gateway is stopping')
    return principal
  }

  async function admit(request: IncomingMessage, response: ServerResponse, host: string): Promise<void> {
    demandSameOrigin(request, host, secure)
    return api.admit(request, response, toClientAddress(request, listen.trustedProxies))
  }

  /** The administrator already exists here, so a failed sign-in is not an error: the user can sign in by the form. */
  async function signInFirst(person: { name: string; password: string }, request: IncomingMessage) {
    const address = toClientAddress(request, listen.trustedProxies)
    const made = await gateway.identity.signIns.signIn({ ...person, address }).catch(() => undefined)
    return made && cookie.set(made.cookie)
  }

  function fromToken(request: IncomingMessage): Principal {
    return gateway.identity.authenticate(toBearer(valuesOf(request, 'authorization')))
  }

  /** If a token is sent, only the token is used: an invalid token must not fall back to the cookie of a browser. */
  async function fromTokenOrCookie(request: IncomingMessage, host: string): Promise<Principal> {
    const value = request.headers.authorization === undefined ? cookie.find(request) : undefined
    if (value === undefined) return fromToken(request)
    demandSameOrigin(request, host, secure)
    return gateway.identity.signIns.authenticate(value)
  }

  /** Proves to commands on this machine that the gateway knows the admin token, without revealing the token. */
  function prove(request: IncomingMessage, response: ServerResponse): void {
    const challenge = new URLSearchParams(request.url?.split('?', 2)[1]).get('challenge') ?? ''
    if (!challengeForm.test(challenge))
      throw new GatewayError('request-invalid', 'The challenge must be 32 bytes as base64url')
    sendJson(response, 200, { url, proof: gateway.identity.prove({ url, challenge }) })
  }

  function ready(response: ServerResponse): void {
    const isReady = !closing && gateway.started() && gateway.status().storage.healthy
    sendJson(response, isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready' })
  }

  function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const failure = toGatewayError(error)
    const told = withoutOwn(failure)
    if (told !== failure) log.error({ error: failure.message }, 'unhandled error in a request')
    if (response.headersSent || response.destroyed) return void response.destroy()
    if (failure.entry.http === 401) response.setHeader('www-authenticate', 'Bearer realm="sallyport"')
    // The unread rest of the body must not be parsed as the next request.
    if (!request.complete) response.setHeader('connection', 'close')
    sendJson(response, failure.entry.http, toErrorBody(told))
  }

  /** Idle sockets of clients would delay the end, so they are closed. */
  function closeWhenDone(): void {
    if (closing && underWay === 0) server.closeAllConnections()
  }

  function stop(): void {
    if (closing) return
    closing = true
    mcp.close()
    api.close()
    server.close(() => closed.resolve())
    closeWhenDone()
  }

  return {
    url,
    quietFor: () => (underWay > 0 ? undefined : parts.clock.monotonic() - lastEnded),
    stop,
    async close() {
      stop()
      const cancel = parts.clock.after(drainMs, () => server.closeAllConnections())
      await closed.promise
      cancel()
    },
  }
}

/** A request without authentication. */
type Visit = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly host: string
  readonly path: string
}

/** Not imported: an import would also load unused parts, such as a WebSocket client, which cost 14 MB of memory. */
const { createServer: createHttpServer } = process.getBuiltinModule('node:http')

type Handler = (request: IncomingMessage, response: ServerResponse) => void

async function createServer(listen: Listen, handler: Handler): Promise<Server> {
  if (!listen.tls) return createHttpServer(toPatience(listen), handler)
  const { createServer: createHttpsServer } = await import('node:https')
  const [cert, key] = await Promise.all([readPem(listen.tls.cert), readPem(listen.tls.key)])
  try {
    return createHttpsServer({ ...toPatience(listen), cert, key }, handler)
  } catch (error) {
    const message = `listen.tls: ${listen.tls.cert} and ${listen.tls.key} are not a matching certificate and key in PEM format`
    throw new GatewayError('config-invalid', message, {}, { cause: error })
  }
}

async function readPem(file: string): Promise<Buffer> {
  return readFile(file).catch((error: unknown) => {
    const message = `listen.tls: ${file} cannot be read: ${toSystemReason(error)}`
    throw new GatewayError('config-unreadable', message, {}, { cause: error })
  })
}

async function bind(server: Server, listen: Listen): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (error: NodeJS.ErrnoException) => {
    const taken = error.code === 'EADDRINUSE'
    const message = taken
      ? `Port ${listen.port} on ${listen.host} is used by another program`
      : `Cannot listen on ${listen.host}:${listen.port} (${error.code})`
    reject(new GatewayError(taken ? 'port-taken' : 'config-invalid', message, {}, { cause: error }))
  })
  server.listen(listen.port, listen.host, () => resolve())
  await promise
}

/** Accepts only a plain path, so that a proxy and the gateway cannot interpret the path differently. */
function toPath(target: string | undefined): string {
  if (!target?.startsWith('/')) throw new GatewayError('request-invalid', 'Absolute request targets are not supported')
  return target.split('?', 1)[0] ?? '/'
}

function toSelector(path: string): ViewSelector | undefined {
  if (path === '/mcp') return { kind: 'all' }
  const [, kind, name] = /^\/mcp\/([ts])\/([A-Za-z0-9][A-Za-z0-9._-]{0,63})$/.exec(path) ?? []
  if (name === undefined) return undefined
  return { kind: kind === 't' ? 'toolset' : 'server', name }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = Buffer.from(JSON.stringify(body))
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': text.length,
    'cache-control': 'no-store',
  })
  response.end(text)
}

function toUrlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
