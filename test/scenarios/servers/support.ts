import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js'
import { CallToolResultSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'vitest'
import type { Call } from '../../../src/contract/call.ts'
import type { Gateway } from '../../../src/gateway/gateway.ts'
import { startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import type { HttpModeName } from '../../fixtures/hostile/http-modes.ts'
import type { ModeName } from '../../fixtures/hostile/modes.ts'
import { type Fields, isFields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { type ConfigInput, poll, quickSupervision, startTestGateway, type TestGateway } from '../../support/gateway.ts'

export const operator = { kind: 'user', name: 'admin-token', role: 'administrator' } as const

type ServerInput = NonNullable<ConfigInput['servers']>[string]

/** What a caller gets to see of one call. */
export type Told = {
  readonly text: string
  readonly isError: boolean
  /** Sallyport's own code, where it speaks instead of the tool. */
  readonly code: string | undefined
  readonly result: Fields
  /** The JSON-RPC error, where there is no result at all. */
  readonly error: McpError | undefined
}

/** One call as an agent makes it; what goes wrong is returned as the agent would see it. */
export async function call(client: Client, name: string, given: Fields = {}, options?: RequestOptions): Promise<Told> {
  try {
    const request = { method: 'tools/call' as const, params: { name, arguments: given } }
    const result = await client.request(request, CallToolResultSchema, options)
    const text = result.content.map((item) => (item.type === 'text' ? item.text : '')).join('\n')
    const code = toFields(toFields(result._meta)['sallyport/error']).code
    return { text, isError: result.isError === true, code: toText(code), result, error: undefined }
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    const code = toText(isFields(error.data) ? error.data.code : undefined)
    return { text: error.message, isError: true, code, result: {}, error }
  }
}

function toText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The calls of one tool in the record, oldest first, once all of them have ended. */
export async function recordOf(gateway: Gateway, tool: string, count = 1): Promise<Call[]> {
  return poll(async () => {
    const { items } = await gateway.calls.list({ limit: 200, tool })
    const ended = items.filter(({ endedAt }) => endedAt !== undefined)
    return items.length >= count && ended.length === items.length ? ended.reverse() : undefined
  })
}

export async function statesOf(gateway: Gateway, tool: string, count = 1): Promise<string[]> {
  return (await recordOf(gateway, tool, count)).map(({ state }) => state)
}

export type Scene = AsyncDisposable & {
  readonly test: TestGateway
  readonly gateway: Gateway
  readonly client: Client
  /** Where the badly behaved server writes down which calls reached it. */
  readonly record: string
  readonly folder: string
  /** The other server of the same gateway still answers, and so does the gateway. */
  expectOthersWell(): Promise<void>
}

export type SceneOptions = {
  readonly limits?: ConfigInput['limits']
  readonly timeout?: ServerInput['timeout']
  readonly supervision?: Partial<typeof quickSupervision>
  readonly wait?: boolean
}

/** A gateway with a server that misbehaves, called `bad`, and one that behaves, called `good`. */
export async function startScene(mode: ModeName, options: SceneOptions = {}): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-scene-'))
  const record = join(folder, 'record.jsonl')
  const bad = { ...stdioFixture('hostile', [mode, '--record', record]), timeout: options.timeout }
  return startSceneWith(bad, { ...options, folder, record })
}

export async function startSceneWith(
  bad: ServerInput,
  options: SceneOptions & { folder?: string; record?: string } = {},
): Promise<Scene> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'sallyport-scene-')))
  const test = await startTestGateway(
    {
      servers: { bad, good: stdioFixture('recording') },
      rules: [{ tools: 'bad_trigger_write', action: 'allow' }],
      errorsAsResults: false, // these tests look at the errors of a server as they are
      ...(options.limits && { limits: options.limits }),
    },
    { folder, wait: options.wait ?? true, supervision: { ...quickSupervision, ...options.supervision } },
  )
  const client = await test.connectV1('tester')
  return {
    test,
    gateway: test.gateway,
    client,
    folder,
    record: options.record ?? join(folder, 'record.jsonl'),
    async expectOthersWell() {
      await test.reach('good', 'connected')
      expect(await call(client, 'good_echo', { text: 'well' })).toMatchObject({ text: 'well', isError: false })
      expect((await fetch(`${test.url}/livez`)).status).toBe(200)
    },
    async [Symbol.asyncDispose]() {
      await test.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A gateway with a server that misbehaves over HTTP, called `bad`, and one that behaves, called `good`. */
export async function startHttpScene(
  mode: HttpModeName,
  args: string[] = [],
  options: SceneOptions = {},
): Promise<Scene> {
  const folder = await temporaryFolder()
  const record = join(folder.path, 'record.jsonl')
  const fixture = await startHttpFixture('hostile-http', [mode, '--record', record, ...args])
  const scene = await startSceneWith(
    { transport: 'http', url: fixture.url, timeout: options.timeout },
    { ...options, record },
  )
  return {
    ...scene,
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]()
      await fixture.stop()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** A folder that is gone when the test is over. */
export async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-scene-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Whether a process lives; one that has ended and was not asked about yet does not. */
export async function isAlive(pid: number): Promise<boolean> {
  if (!existsSync(`/proc/${pid}`)) return false
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') X')
  return !/\) [ZX]/.test(stat)
}

export async function expectGone(...pids: number[]): Promise<void> {
  for (const pid of pids) {
    expect(pid).toBeGreaterThan(0)
    await poll(async () => ((await isAlive(pid)) ? undefined : true))
  }
}

/** A port that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('No port')
  return address.port
}

/** A server of a few lines that is not worth a fixture: `handle` gets each message and what writes an answer. */
export function inlineServer(body: string): { transport: 'stdio'; command: string; args: string[] } {
  const program = `
    const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
    const tool = (name) => ({ name, inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } })
    const text = (value) => ({ content: [{ type: 'text', text: value }] })
    const greeting = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'inline', version: '1' } }
    let pending = ''
    process.stdin.setEncoding('utf8').on('end', () => process.exit(0)).on('data', (chunk) => {
      const lines = (pending + chunk).split('\\n')
      pending = lines.pop()
      for (const line of lines) handle(JSON.parse(line))
    })
    ${body}
  `
  return { transport: 'stdio', command: process.execPath, args: ['-e', program] }
}
