import { mkdtemp, rm } from 'node:fs/promises'
import {
  type Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as openRequest,
} from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Call } from '../../../src/contract/call.ts'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { type Fields, isFields, parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'
import { type ConfigInput, startTestGateway, type TestGateway } from '../../support/gateway.ts'

export const modernVersion = '2026-07-28'
export const legacyVersion = '2025-11-25'
export const metaKey = (name: string) => `io.modelcontextprotocol/${name}`

/** Whatever a tool is, it may be called: these tests are about the surface and not about rules. */
export const allowAll = [{ tools: '*', action: 'allow' as const }]

export type Reply = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Every JSON-RPC message in it, of a JSON body or of a stream of events. */
  readonly messages: readonly Fields[]
  /** The last of them: the answer. */
  readonly message: Fields
  readonly result: Fields
  readonly error: Fields
}

export type Sending = {
  method?: string
  /** As the request line has it; nothing is normalised. */
  path?: string
  /** Flat pairs of names and values, sent as they are, or a record. */
  headers?: readonly string[] | Record<string, string>
  body?: string | Buffer
  agent?: Agent
}

/** One HTTP request by hand. */
export function send(url: string, sending: Sending): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = open(url, sending)
    request.on('error', reject)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('error', reject)
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve(toReply(response.statusCode ?? 0, response.headers, text))
      })
    })
    request.end(sending.body)
  })
}

export function open(url: string, { method = 'POST', path, headers = {}, agent }: Sending): ClientRequest {
  const { hostname, port, pathname } = new URL(url)
  return openRequest({ hostname, port, method, path: path ?? pathname, headers, agent: agent ?? false })
}

function toReply(status: number, headers: IncomingHttpHeaders, text: string): Reply {
  const events = headers['content-type']?.startsWith('text/event-stream') === true
  const messages = (events ? eventsIn(text) : [text]).map(parseJson).filter(isFields)
  const message = messages.at(-1) ?? {}
  return { status, headers, text, messages, message, result: toFields(message.result), error: toFields(message.error) }
}

/** The data of each whole event. */
export function eventsIn(text: string): string[] {
  const blocks = text.split('\n\n').slice(0, -1)
  return blocks.flatMap((block) => block.split('\n').filter((line) => line.startsWith('data: '))).map((l) => l.slice(6))
}

/** What a client sends with every POST. */
export async function headersOf(
  gateway: TestGateway,
  agent: string,
  more: Record<string, string> = {},
): Promise<Record<string, string>> {
  return {
    authorization: `Bearer ${await gateway.token(agent)}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...more,
  }
}

export type Asking = {
  agent?: string
  path?: string
  id?: string | number
  /** Instead of what belongs there; undefined leaves one out. */
  headers?: Record<string, string | undefined>
  /** Instead of the envelope. */
  meta?: Fields
}

/** One request of the stateless era; whatever is not told is as it should be. */
export async function ask(
  gateway: TestGateway,
  method: string,
  params: Fields = {},
  asking: Asking = {},
): Promise<Reply> {
  const { path = '/mcp' } = asking
  return send(`${gateway.url}${path}`, await modernRequest(gateway, method, params, asking))
}

export async function modernRequest(
  gateway: TestGateway,
  method: string,
  params: Fields = {},
  { agent = 'agent', id = 1, headers = {}, meta }: Asking = {},
): Promise<{ headers: Record<string, string>; body: string }> {
  const name: Record<string, string> = typeof params.name === 'string' ? { 'mcp-name': params.name } : {}
  const usual = await headersOf(gateway, agent, {
    'mcp-protocol-version': modernVersion,
    'mcp-method': method,
    ...name,
  })
  const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta ?? envelope() } }
  return { headers: withChanges(usual, headers), body: JSON.stringify(body) }
}

export function envelope(): Fields {
  return {
    [metaKey('protocolVersion')]: modernVersion,
    [metaKey('clientCapabilities')]: {},
    [metaKey('clientInfo')]: { name: 'by-hand', version: '1.0.0' },
  }
}

function withChanges(
  usual: Record<string, string>,
  changes: Record<string, string | undefined>,
): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries({ ...usual, ...changes })) if (value !== undefined) result[name] = value
  return result
}

export type RawSession = {
  readonly id: string
  readonly initialized: Reply
  /** A message in this session; `more` are further headers. */
  post(message: Fields | string, more?: Record<string, string>): Promise<Reply>
  request(method: string, params?: Fields, id?: string | number): Promise<Reply>
  call(tool: string, given?: Fields, id?: string | number): Promise<Reply>
  end(): Promise<Reply>
}

export type Opening = { agent?: string; path?: string; http?: Agent; version?: string; capabilities?: Fields }

/** A session of the older era, without `MCP-Protocol-Version` unless one is given, as some clients do it. */
export async function openSession(gateway: TestGateway, opening: Opening = {}): Promise<RawSession> {
  const { agent = 'agent', path = '/mcp', http, version, capabilities } = opening
  const url = `${gateway.url}${path}`
  const own: Record<string, string> = version === undefined ? {} : { 'mcp-protocol-version': version }
  const usual = await headersOf(gateway, agent)
  const first = {
    headers: usual,
    body: JSON.stringify(initialize(1, legacyVersion, capabilities)),
    ...(http && { agent: http }),
  }
  const initialized = await send(url, first)
  const id = String(initialized.headers['mcp-session-id'])
  let lastId = 100
  const session: RawSession = {
    id,
    initialized,
    post: (message, more = {}) =>
      send(url, {
        headers: { ...usual, ...own, 'mcp-session-id': id, ...more },
        body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }),
        ...(http && { agent: http }),
      }),
    request(method, params = {}, given) {
      lastId += 1
      return session.post({ id: given ?? lastId, method, params })
    },
    call: (name, given = {}, callId) => session.request('tools/call', { name, arguments: given }, callId),
    end: () => send(url, { method: 'DELETE', headers: { ...usual, 'mcp-session-id': id } }),
  }
  if (initialized.status === 200) await session.post({ method: 'notifications/initialized' })
  return session
}

export function initialize(
  id: string | number = 1,
  protocolVersion = legacyVersion,
  capabilities: Fields = {},
): Fields {
  const clientInfo = { name: 'by-hand', version: '1.0.0' }
  return { jsonrpc: '2.0', id, method: 'initialize', params: { protocolVersion, capabilities, clientInfo } }
}

export type Stream = { status: number; text(): string; ended: Promise<void>; close(): void }

/** The standing stream of a session. */
export async function openStream(to: TestGateway, session: string, agent = 'agent', path = '/mcp'): Promise<Stream> {
  const headers = await headersOf(to, agent, { accept: 'text/event-stream', 'mcp-session-id': session })
  const request = open(`${to.url}${path}`, { method: 'GET', headers })
  request.end()
  const { response, text, ended } = await readStream(request)
  return { status: response.statusCode ?? 0, text, ended, close: () => request.destroy() }
}

/** An answer that goes on: what has come of it until now. */
export function readStream(
  request: ClientRequest,
): Promise<{ response: IncomingMessage; text(): string; ended: Promise<void> }> {
  return new Promise((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (response) => {
      let text = ''
      const ended = new Promise<void>((end) => response.on('close', end))
      response.on('error', () => {})
      response.on('data', (chunk) => {
        text += chunk
      })
      resolve({ response, text: () => text, ended })
    })
  })
}

/** The text of a tool's result, as any client gets it. */
export function textOf(result: unknown): string | undefined {
  const { content } = toFields(result)
  const { text } = toFields(Array.isArray(content) ? content[0] : undefined)
  return typeof text === 'string' ? text : undefined
}

export function namesIn(result: unknown): string[] {
  const { tools } = toFields(result)
  return Array.isArray(tools) ? tools.map((tool) => String(toFields(tool).name)) : []
}

/** The calls that the gateway recorded, oldest first. */
export async function recordedCalls(gateway: TestGateway): Promise<Call[]> {
  const { items } = await gateway.gateway.calls.list({ limit: 1000 })
  return [...items].reverse()
}

/** A recording server over stdio, and where it writes down what reaches it. */
export function recordingAt(folder: string, name = 'recording', args: string[] = []) {
  const file = join(folder, `${name}.jsonl`)
  return { file, server: stdioFixture('recording', ['--record', file, ...args]) }
}

export async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-mcp-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** What a client is told at the very first: the same in either era. */
export const offeredCapabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
}

/** What the gateway offers beside the tools of servers, in the order of its list. */
export const ownTools = ['sallyport_read_result', 'sallyport_approval_status', 'sallyport_wait_for_approval']

export type RecordingGateway = {
  readonly gateway: TestGateway
  /** Where the server writes down what reaches it. */
  readonly record: string
  readonly folder: string
  readonly close: () => Promise<void>
}

/** A gateway in front of one recording server, `rec`, for the tests of a whole file. */
export async function startRecordingGateway(config: ConfigInput = {}): Promise<RecordingGateway> {
  const folder = await temporaryFolder()
  const { file, server } = recordingAt(folder.path)
  const gateway = await startTestGateway({ servers: { rec: server }, ...config })
  const close = async () => {
    await gateway.close()
    await folder[Symbol.asyncDispose]()
  }
  return { gateway, record: file, folder: folder.path, close }
}
