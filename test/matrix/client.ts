import { Client as ClientV2, type Transport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport as TransportV1 } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { type Fields, isFields, toFields } from '../fixtures/lib/json-rpc.ts'
import { metaKey } from '../fixtures/lib/modern-rules.ts'
import { type Era, revisionOf } from './table.ts'

type Named = { name: string; arguments?: Record<string, string>; _meta?: Record<string, unknown> }
type Completed = { ref: Reference; argument: { name: string; value: string } }
type Reference = { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string }
type Level = 'debug' | 'info' | 'error'
export type Watched = { readonly lists?: boolean; readonly uris?: string[] }
type Options = { readonly signal?: AbortSignal; readonly onprogress?: (progress: Fields) => void }

/** What a cell does with a client, whichever SDK it comes from and whichever era it speaks. */
export type MatrixClient = {
  readonly era: Era
  /** The notifications that came, and the questions that were answered, since somebody emptied the list. */
  readonly heard: Fields[]
  readonly asked: Fields[]
  /** The error objects as they came, before the SDK made its own of them. */
  readonly refused: Fields[]
  capabilities(): Fields
  instructions(): string | undefined
  listTools(): Promise<Fields>
  callTool(call: Named, options?: Options): Promise<Fields>
  listResources(): Promise<Fields>
  listTemplates(): Promise<Fields>
  readResource(uri: string): Promise<Fields>
  /** Without a cursor this is the first page, or with the newer SDK everything. */
  listPrompts(cursor?: string): Promise<Fields>
  /** One request past the SDK, for what it does by itself or does not know. */
  request(method: string, params: Fields): Promise<Fields>
  getPrompt(prompt: Named): Promise<Fields>
  complete(wanted: Completed): Promise<Fields>
  ping(): Promise<unknown>
  /** From now on it hears what servers log from this level on. */
  logFrom(level: Level): Promise<void>
  /** From now on it hears of changes, in the way of its era, until the returned function is called. */
  watch(watched: Watched): Promise<() => Promise<void>>
  changeRoots(): Promise<void>
  close(): Promise<void>
}

const implementation = { name: 'matrix', version: '1.0.0' }
export const declaredExtension = 'example.com/agent'

const everything = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
  extensions: { [declaredExtension]: { since: 1 }, [metaKey('tasks')]: {} },
}

export type ClientOptions = { readonly bare?: boolean }

const sampled = { model: 'matrix', role: 'assistant' as const, content: { type: 'text' as const, text: 'by a model' } }
const roots = { roots: [{ uri: 'file:///matrix', name: 'matrix' }] }
const filled = { name: 'Ada', username: 'ada', email: 'ada@example.com', context: 'a test' }

function toElicited(params: unknown) {
  const elsewhere = isFields(params) && params.mode === 'url'
  return elsewhere ? { action: 'accept' as const } : { action: 'accept' as const, content: filled }
}

export async function connectV1(transport: TransportV1, { bare = false }: ClientOptions = {}): Promise<MatrixClient> {
  const client = new ClientV1(implementation, { capabilities: bare ? {} : everything })
  const { heard, asked, note } = createNotes()
  client.fallbackNotificationHandler = async ({ method, params }) => void heard.push({ method, params })
  if (!bare) {
    client.setRequestHandler(CreateMessageRequestSchema, (request) => note(request, sampled))
    client.setRequestHandler(ElicitRequestSchema, (request) => note(request, toElicited(request.params)))
    client.setRequestHandler(ListRootsRequestSchema, (request) => note(request, roots))
  }
  await client.connect(transport)
  const { refused, request } = tap(transport, undefined)
  return {
    era: 'legacy',
    heard,
    asked,
    refused,
    capabilities: () => ({ ...client.getServerCapabilities() }),
    instructions: () => client.getInstructions(),
    listTools: () => client.listTools(),
    callTool: (call, options) => client.callTool(call, undefined, options),
    listResources: () => client.listResources(),
    listTemplates: () => client.listResourceTemplates(),
    readResource: (uri) => client.readResource({ uri }),
    listPrompts: (cursor) => client.listPrompts(cursor === undefined ? {} : { cursor }),
    request,
    getPrompt: (prompt) => client.getPrompt(prompt),
    complete: (wanted) => client.complete(wanted),
    ping: () => client.ping(),
    async logFrom(level) {
      await client.setLoggingLevel(level)
    },
    async watch({ uris = [] }) {
      for (const uri of uris) await client.subscribeResource({ uri })
      return async () => {
        for (const uri of uris) await client.unsubscribeResource({ uri })
      }
    },
    changeRoots: () => client.sendRootsListChanged(),
    close: () => client.close(),
  }
}

export async function connectV2(
  transport: TransportV2,
  era: Era,
  { bare = false }: ClientOptions = {},
): Promise<MatrixClient> {
  const mode = era === 'modern' ? { pin: revisionOf.modern } : 'legacy'
  const capabilities = bare ? {} : everything
  const client = new ClientV2(implementation, { capabilities, versionNegotiation: { mode } })
  const { heard, asked, note } = createNotes()
  client.fallbackNotificationHandler = async ({ method, params }) => void heard.push({ method, params })
  if (!bare) {
    client.setRequestHandler('sampling/createMessage', (request) => note(request, sampled))
    client.setRequestHandler('elicitation/create', (request) => note(request, toElicited(request.params)))
    client.setRequestHandler('roots/list', (request) => note(request, roots))
  }
  await client.connect(transport)
  const { refused, request } = tap(transport, era === 'modern' ? toEnvelope(capabilities) : undefined)
  let level: Level | undefined
  const withLevel = <Call extends Named>(call: Call): Call =>
    level === undefined ? call : { ...call, _meta: { ...call._meta, [metaKey('logLevel')]: level } }
  return {
    era,
    heard,
    asked,
    refused,
    capabilities: () => ({ ...client.getServerCapabilities() }),
    instructions: () => client.getInstructions(),
    listTools: () => client.listTools(),
    callTool: (call, options) => client.callTool(withLevel(call), options),
    listResources: () => client.listResources(),
    listTemplates: () => client.listResourceTemplates(),
    readResource: (uri) => client.readResource({ uri }),
    listPrompts: (cursor) => client.listPrompts(cursor === undefined ? undefined : { cursor }),
    request,
    getPrompt: (prompt) => client.getPrompt(prompt),
    complete: (wanted) => client.complete(wanted),
    ping: () => client.ping(),
    async logFrom(wanted) {
      if (era === 'legacy') await client.setLoggingLevel(wanted)
      else level = wanted
    },
    watch: ({ lists = false, uris = [] }) => (era === 'modern' ? listen(client, lists, uris) : follow(client, uris)),
    changeRoots: () => client.sendRootsListChanged(),
    close: () => client.close(),
  }
}

function toEnvelope(capabilities: Fields): Fields {
  return {
    [metaKey('protocolVersion')]: revisionOf.modern,
    [metaKey('clientCapabilities')]: capabilities,
    [metaKey('clientInfo')]: implementation,
  }
}

async function listen(client: ClientV2, lists: boolean, uris: string[]) {
  const changes = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
  const subscription = await client.listen({
    ...(lists && changes),
    ...(uris.length > 0 && { resourceSubscriptions: uris }),
  })
  return () => subscription.close()
}

async function follow(client: ClientV2, uris: string[]) {
  for (const uri of uris) await client.subscribeResource({ uri })
  return async () => {
    for (const uri of uris) await client.unsubscribeResource({ uri })
  }
}

/** As much of a transport as is needed beside its client. */
type Wire<Message, Rest extends unknown[]> = {
  onmessage?: (message: Message, ...rest: Rest) => void
  send(message: { jsonrpc: '2.0'; id: string; method: string; params: Fields }): Promise<void>
}

/** Reads along on the transport of a client that is connected, and sends requests of its own on it. */
function tap<Message, Rest extends unknown[]>(transport: Wire<Message, Rest>, meta: Fields | undefined) {
  const refused: Fields[] = []
  const open = new Map<unknown, PromiseWithResolvers<Fields>>()
  const { onmessage } = transport
  let sent = 0
  transport.onmessage = (message, ...rest) => {
    const { id, result, error } = toFields(message)
    if (isFields(error)) refused.push(error)
    const own = open.get(id)
    if (!own) return onmessage?.(message, ...rest)
    open.delete(id)
    if (isFields(result)) own.resolve(result)
    else own.reject(new Error(JSON.stringify(error)))
  }
  return { refused, request }

  async function request(method: string, params: Fields): Promise<Fields> {
    sent += 1
    const id = `by-hand-${sent}`
    const answer = Promise.withResolvers<Fields>()
    answer.promise.catch(() => {}) // it may be refused before anybody waits for it
    open.set(id, answer)
    await transport.send({ jsonrpc: '2.0', id, method, params: { ...params, ...(meta && { _meta: meta }) } })
    return answer.promise
  }
}

function createNotes() {
  const heard: Fields[] = []
  const asked: Fields[] = []

  return { heard, asked, note }

  function note<Answer>({ method, params }: { method: string; params?: unknown }, answer: Answer): Answer {
    asked.push({ method, params })
    return answer
  }
}
