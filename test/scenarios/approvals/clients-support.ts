import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { Approval } from '../../../src/contract/approval.ts'
import type { Principal } from '../../../src/contract/principal.ts'
import { readRecord } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { firstAdministrator } from '../../support/people.ts'
import { recordingAt, temporaryFolder } from '../mcp/raw.ts'

const bin = fileURLToPath(new URL('../../../bin/sallyport.js', import.meta.url))

/** What the person at the client does when its program asks something. */
export type Elicited = { action: 'accept' | 'decline' | 'cancel'; content?: Record<string, string> }
export type AtClient = (asked: Fields) => Elicited | Promise<Elicited>

export type Kind = {
  readonly sdk: 'v1' | 'v2'
  readonly over: 'http' | 'stdio'
  readonly elicitation?: { form?: Record<string, never>; url?: Record<string, never> }
}

export const kinds: Readonly<Record<string, Kind>> = {
  'a 2026 client that opens addresses': { sdk: 'v2', over: 'http', elicitation: { url: {} } },
  'a 2026 client that shows forms': { sdk: 'v2', over: 'http', elicitation: { form: {} } },
  'a 2026 client that asks nobody': { sdk: 'v2', over: 'http' },
  'a 2025 client that opens addresses': { sdk: 'v1', over: 'http', elicitation: { form: {}, url: {} } },
  'a 2025 client that shows forms': { sdk: 'v1', over: 'http', elicitation: {} },
  'a 2025 client that asks nobody': { sdk: 'v1', over: 'http' },
  'a 2026 client over stdio': { sdk: 'v2', over: 'stdio', elicitation: { url: {} } },
  'a 2025 client over stdio': { sdk: 'v1', over: 'stdio' },
}

export type Calling = { signal?: AbortSignal; onprogress?: (progress: Fields) => void }

/** A client of one of the official SDKs, whichever it is. */
export type AnyClient = {
  /** What it was asked to show to the person at it, in order. */
  readonly asked: Fields[]
  /** The approvals that were taken back while they were shown. */
  readonly takenBack: Fields[]
  readonly heard: Fields[]
  call(name: string, given?: Fields, options?: Calling): Promise<Fields>
  tools(): Promise<string[]>
  close(): Promise<void>
}

export type Scene = AsyncDisposable & {
  readonly gateway: TestGateway
  readonly ada: Principal
  /** The arguments of what reached the server, in order. */
  received(): Promise<Fields[]>
  /** The approval that waits for a call with these arguments, once there is one. */
  asked(given: Fields): Promise<Approval>
  answer(id: string, verdict: 'approve' | 'deny', reason?: string): Promise<Approval>
  stateOf(id: string): Promise<string>
  connect(kind: Kind, options?: { agent?: string; atClient?: AtClient; path?: string }): Promise<AnyClient>
  /** Nobody waits for a call any more. */
  quiet(): Promise<void>
}

/** A gateway in front of one recording server, with an administrator who may answer. */
export async function startScene(config: ConfigInput = {}): Promise<Scene> {
  const folder = await temporaryFolder()
  const { file, server } = recordingAt(folder.path)
  const gateway = await startTestGateway({ servers: { rec: server }, ...config })
  const { name } = await firstAdministrator(gateway)
  const ada: Principal = { kind: 'user', name, role: 'administrator', person: true }
  const { approvals } = gateway.gateway
  const clients: AnyClient[] = []
  return {
    gateway,
    ada,
    received: async () => (await readRecord(file)).map((call) => call.arguments ?? {}),
    asked: (given) =>
      poll(async () => {
        const { items } = await approvals.list(ada, { limit: 100, state: 'waiting' })
        return items.find((approval) => isDeepStrictEqual(approval.arguments, given))
      }),
    answer: (id, verdict, reason) => approvals.answer(ada, id, { verdict, reason }),
    stateOf: async (id) => (await approvals.get(ada, id)).state,
    async connect(kind, { agent = 'agent', atClient = accepts, path = '/mcp' } = {}) {
      const address = { url: new URL(path, gateway.url), token: await gateway.token(agent) }
      const client = kind.sdk === 'v1' ? await openV1(kind, address, atClient) : await openV2(kind, address, atClient)
      clients.push(client)
      return client
    },
    quiet: () => poll(() => gateway.gateway.status().calls.running === 0 || undefined).then(() => {}),
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(clients.map((client) => client.close()))
      await gateway.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const accepts: AtClient = () => ({ action: 'accept' })

type Address = { readonly url: URL; readonly token: string }

async function openV1({ over, elicitation }: Kind, address: Address, atClient: AtClient): Promise<AnyClient> {
  const { asked, takenBack, heard, show } = createNotes(atClient)
  const capabilities = elicitation ? { elicitation } : {}
  const client = new ClientV1({ name: 'test-client', version: '1.0.0' }, { capabilities })
  client.fallbackNotificationHandler = async ({ method, params }) => void heard.push({ method, params })
  if (elicitation) client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => show(params, signal))
  await client.connect(
    over === 'stdio'
      ? new StdioV1(toCommand(address))
      : new HttpV1(address.url, { requestInit: { headers: { authorization: `Bearer ${address.token}` } } }),
  )
  return {
    asked,
    takenBack,
    heard,
    call: async (name, given = {}, options = {}) =>
      toFields(await client.callTool({ name, arguments: given }, undefined, options)),
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    close: () => client.close(),
  }
}

async function openV2({ over, elicitation }: Kind, address: Address, atClient: AtClient): Promise<AnyClient> {
  const { asked, takenBack, heard, show } = createNotes(atClient)
  const capabilities = elicitation ? { elicitation } : {}
  const client = new ClientV2(
    { name: 'test-client', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: 'auto' } },
  )
  client.fallbackNotificationHandler = async ({ method, params }) => void heard.push({ method, params })
  if (elicitation) client.setRequestHandler('elicitation/create', ({ params }) => show(params))
  await client.connect(
    over === 'stdio'
      ? new StdioV2(toCommand(address))
      : new HttpV2(address.url, { requestInit: { headers: { authorization: `Bearer ${address.token}` } } }),
  )
  if (client.getProtocolEra() !== 'modern') throw new Error('This client speaks the older era')
  return {
    asked,
    takenBack,
    heard,
    call: async (name, given = {}, options = {}) =>
      toFields(await client.callTool({ name, arguments: given }, options)),
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    close: () => client.close(),
  }
}

function toCommand({ url, token }: Address) {
  const args = [bin, 'stdio', '--url', url.origin]
  const { PATH = '', HOME = '', SALLYPORT_TEST_RUN = '' } = process.env
  const env = { PATH, HOME, SALLYPORT_TEST_RUN, NO_COLOR: '1', SALLYPORT_TOKEN: token }
  return { command: process.execPath, args, env, stderr: 'ignore' as const }
}

function createNotes(atClient: AtClient) {
  const asked: Fields[] = []
  const takenBack: Fields[] = []
  const heard: Fields[] = []

  return { asked, takenBack, heard, show }

  async function show(params: unknown, signal?: AbortSignal): Promise<Elicited> {
    const approval = toFields(params)
    asked.push(approval)
    signal?.addEventListener('abort', () => takenBack.push(approval))
    return atClient(approval)
  }
}
