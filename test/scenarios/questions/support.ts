import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Call } from '../../../src/contract/call.ts'
import type { Step } from '../../fixtures/asking.ts'
import { startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { type Fields, isFields, parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'
import { type ConfigInput, poll, quickSupervision, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import {
  allowAll,
  ask,
  eventsIn,
  headersOf,
  metaKey,
  modernRequest,
  modernVersion,
  open,
  openSession,
  type RawSession,
  type Reply,
  recordedCalls,
  temporaryFolder,
  textOf,
} from '../mcp/raw.ts'

export const everything = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} }
export const accept = (content: Fields): Fields => ({ action: 'accept', content })

type ServerInput = NonNullable<ConfigInput['servers']>[string]

export type AskingScene = AsyncDisposable & {
  readonly gateway: TestGateway
  readonly folder: string
  /** Everything that reached the server, in order. */
  record(): Promise<Fields[]>
  /** Resolves with the messages that fit, once there are so many. */
  reached(fits: (message: Fields) => boolean, count?: number): Promise<Fields[]>
}

type SceneOptions = Parameters<typeof startTestGateway>[1] & {
  readonly over?: 'stdio' | 'http'
  readonly args?: string[]
  readonly server?: Partial<ServerInput>
  readonly config?: ConfigInput
}

/** A gateway in front of one server that asks, `asking`. */
export async function startAsking(options: SceneOptions = {}): Promise<AskingScene> {
  const { over = 'http', args = [], server, config, ...rest } = options
  // A clock that is moved far ahead would have the link proven, and given up, in the same moment.
  const supervision = { ...quickSupervision, idleMs: 10 ** 9 }
  const folder = await temporaryFolder()
  const file = join(folder.path, 'record.jsonl')
  const own = ['--record', file, ...args]
  const fixture = over === 'http' ? await startHttpFixture('asking', ['--http', ...own]) : undefined
  const definition = fixture ? { transport: 'http' as const, url: fixture.url } : stdioFixture('asking', own)
  const servers = { asking: { ...definition, ...server } as ServerInput }
  const gateway = await startTestGateway({ rules: allowAll, servers, ...config }, { supervision, ...rest })
  await gateway.reach('asking', 'connected')
  const record = () => readMessages(file)
  return {
    gateway,
    folder: folder.path,
    record,
    reached: (fits, count = 1) =>
      poll(async () => {
        const found = (await record()).filter(fits)
        return found.length >= count ? found : undefined
      }),
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await fixture?.stop()
      await folder[Symbol.asyncDispose]()
    },
  }
}

async function readMessages(file: string): Promise<Fields[]> {
  if (!existsSync(file)) return []
  return (await readFile(file, 'utf8')).split('\n').map(parseJson).filter(isFields)
}

/** One POST whose answer is read while it comes. */
export type Live = {
  messages(): Fields[]
  /** The first message that fits, when it is there. */
  heard(fits: (message: Fields) => boolean): Promise<Fields>
  /** The question with this text. */
  asked(message?: string): Promise<Fields>
  /** What the tool says, once it has. */
  result(): Promise<Fields>
  hangUp(): void
}

export async function live(url: string, sending: { headers: Record<string, string>; body: string }): Promise<Live> {
  const request = open(url, sending)
  let text = ''
  let events = false
  request.on('error', () => {})
  request.on('response', (response) => {
    events = response.headers['content-type']?.startsWith('text/event-stream') === true
    response.on('error', () => {})
    response.on('data', (chunk) => {
      text += chunk
    })
  })
  request.end(sending.body)
  const messages = () => (events ? eventsIn(text) : [text]).map(parseJson).filter(isFields)
  const heard = (fits: (message: Fields) => boolean) => poll(() => messages().find(fits))
  return {
    messages,
    heard,
    asked: (message) => heard(({ id, method, params }) => isQuestion(id, method) && isAbout(params, message)),
    result: async () => toFields((await heard((message) => 'result' in message || 'error' in message)).result),
    hangUp: () => request.destroy(),
  }
}

function isQuestion(id: unknown, method: unknown): boolean {
  return id !== undefined && method !== undefined
}

function isAbout(params: unknown, message: string | undefined): boolean {
  return message === undefined || toFields(params).message === message
}

export type Client = RawSession & {
  /** Calls `script` and does not wait. */
  script(steps: readonly Step[], more?: { id?: number; given?: Fields; progressToken?: string }): Promise<Live>
  answer(question: Fields, result: Fields): Promise<Reply>
}

/** A client of the older era that can be asked. */
export async function openClient(
  gateway: TestGateway,
  agent = 'agent',
  capabilities: Fields = everything,
): Promise<Client> {
  const session = await openSession(gateway, { agent, capabilities })
  const headers = await headersOf(gateway, agent, { 'mcp-session-id': session.id })
  return {
    ...session,
    script(steps, { id = 7, given = {}, progressToken } = {}) {
      const _meta = progressToken === undefined ? {} : { _meta: { progressToken } }
      const params = { name: 'asking_script', arguments: { steps, ...given }, ..._meta }
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
      return live(`${gateway.url}/mcp`, { headers, body })
    },
    answer: ({ id }, result) => session.post({ id, result }),
  }
}

export type Stateless = {
  readonly agent?: string
  readonly path?: string
  readonly name?: string
  readonly capabilities?: Fields
  readonly logLevel?: string
  readonly progressToken?: string
  readonly more?: Fields
}

function toRequest(given: Fields, options: Stateless) {
  const { agent, path, name = 'asking_script', capabilities = everything, logLevel, progressToken, more } = options
  const meta = {
    [metaKey('protocolVersion')]: modernVersion,
    [metaKey('clientCapabilities')]: capabilities,
    ...(logLevel !== undefined && { [metaKey('logLevel')]: logLevel }),
    ...(progressToken !== undefined && { progressToken }),
  }
  const params = { name, arguments: given, ...more }
  return { params, asking: { meta, ...(agent !== undefined && { agent }), ...(path !== undefined && { path }) } }
}

/** One request of a stateless caller for a tool. */
export function request(gateway: TestGateway, given: Fields, options: Stateless = {}): Promise<Reply> {
  const { params, asking } = toRequest(given, options)
  return ask(gateway, 'tools/call', params, asking)
}

/** The same, read while it comes. */
export async function liveRequest(gateway: TestGateway, given: Fields, options: Stateless = {}): Promise<Live> {
  const { params, asking } = toRequest(given, options)
  return live(`${gateway.url}${options.path ?? '/mcp'}`, await modernRequest(gateway, 'tools/call', params, asking))
}

/** What the tool heard in answer to its questions. */
export function heardBy(result: unknown): unknown {
  return toFields(parseJson(textOf(result) ?? '')).heard
}

export function pidOf(result: unknown): unknown {
  return toFields(parseJson(textOf(result) ?? '')).pid
}

/** The record, once no call in it is under way. */
export function endedCalls(gateway: TestGateway, count: number): Promise<Call[]> {
  return poll(async () => {
    const calls = await recordedCalls(gateway)
    return calls.length >= count && calls.every(({ endedAt }) => endedAt !== undefined) ? calls : undefined
  })
}
