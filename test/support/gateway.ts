import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { z } from 'zod'
import type { Config } from '../../src/contract/config.ts'
import type { Principal } from '../../src/contract/principal.ts'
import type { ConnectionState, Server } from '../../src/contract/server.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import { type ServeOptions, startGateway } from '../../src/http/serve.ts'
import { adminToken } from '../../src/identity/identity.ts'
import type { SupervisionSettings } from '../../src/servers/servers.ts'

export type ConfigInput = z.input<typeof Config>

/** Short times, so that tests do not wait long. */
export const quickSupervision: Partial<SupervisionSettings> = {
  backoff: { first: 50, most: 400, factor: 2 },
  stableMs: 2000,
  flaps: 5,
  proofTimeoutMs: 1000,
  refreshMs: 20,
}

const sharedKey = Buffer.alloc(32, 7).toString('base64')

export type TestGateway = AsyncDisposable & {
  readonly url: string
  readonly mcpUrl: string
  readonly gateway: Gateway
  readonly folder: string
  readonly configFile: string
  /** The token of an agent, created on first use. */
  token(agent: string): Promise<string>
  /** Replaces the configuration file, as an editor would. */
  writeConfig(config: ConfigInput): Promise<void>
  /** Replaces the configuration file with a text that may be invalid. */
  writeText(text: string): Promise<void>
  /** Resolves when a server has reached a state. Fails after ten seconds, with the current state. */
  reach(server: string, state: ConnectionState): Promise<Server>
  /** One request as the agent would send it; `path` starts with `/`. */
  fetch(agent: string, path: string, init?: RequestInit): Promise<Response>
  connectV1(agent: string, path?: string): Promise<ClientV1>
  connectV2(agent: string, options?: { path?: string; mode?: 'auto' | 'legacy' }): Promise<ClientV2>
  /** Stops the gateway while its clients are still connected. */
  stop(): Promise<void>
  close(): Promise<void>
}

/** Raises the default limits, because tests make more calls than agents. Tests of limits set their own. */
export function roomy(config: ConfigInput): ConfigInput {
  return {
    ...config,
    limits: { callsPerMinute: 1_000_000, concurrent: 10_000, changesPerMinute: 1_000_000, ...config.limits },
  }
}

type TestOptions = Partial<Omit<ServeOptions, 'configFile' | 'dataFolder'>> & {
  readonly wait?: boolean
  readonly folder?: string
}

/** A real gateway on a free port with its own data folder, which is removed on close. */
export async function startTestGateway(config: ConfigInput, options: TestOptions = {}): Promise<TestGateway> {
  const { wait = true, folder: given, ...rest } = options
  const folder = given ?? (await mkdtemp(join(tmpdir(), 'sallyport-test-')))
  const configFile = join(folder, 'sallyport.json')
  const write = (wanted: ConfigInput) =>
    writeFile(configFile, `${JSON.stringify({ listen: { port: 0 }, ...roomy(wanted) }, null, 2)}\n`)
  await write(config)
  const running = await startGateway({
    supervision: quickSupervision,
    // Gateways that share a database need the same key.
    ...(rest.databaseUrl !== undefined && { environment: { ...process.env, SALLYPORT_KEY: sharedKey } }),
    passwordCost: { logN: 4, r: 1, p: 1 },
    ...rest,
    configFile,
    dataFolder: join(folder, 'data'),
  })
  const { gateway, url, mcpUrl } = running
  const tokens = new Map<string, Promise<string>>()
  const clients: { close(): Promise<void> }[] = []
  let closing: Promise<void> | undefined

  const token = (agent: string): Promise<string> => {
    const known = tokens.get(agent) ?? gateway.tokens.create(adminToken, { agent }).then((made) => made.token)
    tokens.set(agent, known)
    return known
  }
  const headers = async (agent: string) => ({ authorization: `Bearer ${await token(agent)}` })

  async function close(): Promise<void> {
    await Promise.allSettled(clients.map((client) => client.close()))
    await running.close()
    if (given === undefined) await rm(folder, { recursive: true, force: true })
  }

  const test: TestGateway = {
    url,
    mcpUrl,
    gateway,
    folder,
    configFile,
    token,
    writeConfig: write,
    writeText: (text) => writeFile(configFile, text),
    reach: (server, state) => reach(gateway, server, state),
    async fetch(agent, path, init = {}) {
      return fetch(`${url}${path}`, { ...init, headers: { ...(await headers(agent)), ...toPlain(init.headers) } })
    },
    async connectV1(agent, path = '/mcp') {
      const client = new ClientV1({ name: 'test-client', version: '1.0.0' })
      await client.connect(new TransportV1(new URL(path, url), { requestInit: { headers: await headers(agent) } }))
      clients.push(client)
      return client
    },
    async connectV2(agent, { path = '/mcp', mode = 'auto' } = {}) {
      const client = new ClientV2({ name: 'test-client', version: '1.0.0' }, { versionNegotiation: { mode } })
      await client.connect(new TransportV2(new URL(path, url), { requestInit: { headers: await headers(agent) } }))
      clients.push(client)
      return client
    },
    stop: () => running.close(),
    close() {
      closing ??= close()
      return closing
    },
    [Symbol.asyncDispose]: () => test.close(),
  }
  if (wait) await settle(gateway)
  return test
}

function toPlain(headers: RequestInit['headers']): Record<string, string> {
  return Object.fromEntries(new Headers(headers).entries())
}

/** Waits until the first attempt to connect to every enabled server has ended. */
async function settle(gateway: Gateway): Promise<void> {
  await poll(() => gateway.servers.list().every(({ state }) => state !== 'connecting') || undefined)
}

async function reach(gateway: Gateway, name: string, state: ConnectionState): Promise<Server> {
  let last = 'absent'
  const found = await poll(() => {
    const server = gateway.servers.list().find((candidate) => candidate.name === name)
    last = server ? `${server.state} (${server.error?.message ?? 'no error'})` : 'absent'
    return server?.state === state ? server : undefined
  }).catch(() => undefined)
  if (found) return found
  throw new Error(`${name} did not become ${state}: it is ${last}`)
}

/** Repeats a check until it returns a value, so that tests need no fixed waiting times. */
export async function poll<Found>(
  ask: () => Found | undefined | Promise<Found | undefined>,
  limitMs = 10_000,
): Promise<Found> {
  const end = performance.now() + limitMs
  while (performance.now() < end) {
    const found = await ask()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`Nothing found within ${limitMs} ms`)
}

export const administrator: Principal = { kind: 'user', name: 'root', role: 'administrator', person: true }

/** Accepts all current definitions of a server, as `servers upgrade` does. */
export async function acceptTools({ gateway }: Pick<TestGateway, 'gateway'>, server: string): Promise<void> {
  const waiting = gateway.pins.list(administrator, { server, state: ['changed', 'new'] })
  const decisions = waiting.flatMap(({ id, live }) => (live ? [{ id, hash: live.hash }] : []))
  await gateway.pins.accept(administrator, decisions)
}
