import type { ConnectionSpec } from '../config/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { isTaskMethod, type Permit, toSentMeta } from '../contract/permit.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { Server, ServerDefinition } from '../contract/server.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Kept } from '../lib/ring-buffer.ts'
import { toPlainLine } from '../lib/text.ts'
import type { Masking } from '../masking/masking.ts'
import { type Templated, trialId } from '../secrets/secrets.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import type { Caller } from '../wire/caller.ts'
import { gatewayName, type ServerFacts } from '../wire/codec.ts'
import {
  type Connection,
  createConnection,
  defaultSupervision,
  offeredLists,
  type Remembered,
  type SupervisionSettings,
} from './connection.ts'
import { createWorkingFolders } from './folders.ts'
import type { InProcessServer } from './in-process.ts'
import { closedBecause } from './link.ts'
import { listKinds, type RawLists } from './listing.ts'
import { toParams } from './params.ts'
import type { ChildRecords } from './transports/stdio.ts'
import { type Trial, type TrialOutcome, tryDefinition } from './trial.ts'

export { clearUp, keepClearingUp } from './clear-up.ts'
export type { SupervisionSettings } from './connection.ts'
export { createServerEntries, createServerEntriesRemover, type ServerEntries } from './entries.ts'
export { networkCredentials } from './environment.ts'
export { toFailure } from './failure.ts'
export { type Getting, getJson } from './http/get.ts'
export { type Posting, postJson } from './http/post.ts'
export type { InProcessServer, InProcessTool } from './in-process.ts'
export { type ListKind, listKinds, noLists, type RawList, type RawLists } from './listing.ts'
export {
  createServerService,
  type RisksChange,
  type ServerChange,
  type ServerService,
  type ServerTrial,
} from './service.ts'
export type { Trial } from './trial.ts'
export type { OfferedTools } from './views.ts'

/** The status of a server without the counts of its tools, which the catalog adds. */
export type ServerLinkStatus = Omit<Server, 'tools' | 'setAside' | 'scope'> & { readonly scope: ScopeKey }

/** What the record of a call needs to know of its sending. */
export type SendEvents = {
  /** The server answered after the call had ended. */
  onLate(): void
  /** The call was sent a second time. */
  onResent(): void
}

/** The standard error of a server. `log` changes when the line numbers start from the beginning again. */
export type KeptLogs = Kept & { readonly log: string }

export type Servers = {
  /** Connects new servers, replaces changed ones and closes removed ones. Unchanged servers keep their link and calls. */
  reconcile(specs: readonly ConnectionSpec[]): void
  list(): ServerLinkStatus[]
  find(id: string): ServerLinkStatus | undefined
  /** The lists that were read last; undefined while the server is not available. */
  lists(id: string): RawLists | undefined
  /** The server's revision, capabilities and name, from the initialization of its link. */
  facts(id: string): ServerFacts | undefined
  logs(id: string): KeptLogs
  /** The last step of a call: sends it. The `Permit` proves that the call was claimed. */
  send(permit: Permit, caller: Caller, events: SendEvents): Promise<Answer>
  /** Adds a server whose tools run inside the gateway. */
  attach(server: InProcessServer): void
  attached(): readonly InProcessServer[]
  reconnect(id: string): void
  settled(id: string, signal: AbortSignal): Promise<void>
  /** Waits for the first attempts of these connections, at most the given time. Undefined if there is none to wait for. */
  introduced(ids: Iterable<string>, milliseconds: number): Promise<void> | undefined
  /** Connects to a definition without saving it, then disconnects. */
  trial(wanted: Trial, signal: AbortSignal): Promise<TrialOutcome>
  /** Call after a person removed the server: a new server of that name gets an empty working folder. */
  forget(id: string): Promise<void>
  close(): Promise<void>
}

export type ServersParts = {
  readonly instance: string
  readonly version: string
  /** The gateway's data folder. Each program without a `cwd` runs in a separate folder below it. */
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
  readonly children: ChildRecords
  readonly memory: { get(key: string): Promise<string | undefined>; set(key: string, value: string): void }
  readonly supervision?: Partial<SupervisionSettings>
  /** The currently configured limits. */
  limits(): { readonly message: number; readonly tools: number }
  egressAllow(): readonly string[]
  /** Fills in `${NAME}` with values that the scope of the template may use; throws `variable-missing`. */
  resolve(connection: string, wanted: Templated): ServerDefinition
  /** Masks secrets in all messages and output of servers. */
  readonly masking: Masking
  /** Secrets were masked in a server's message outside of calls. */
  onSecretFound(connection: string, found: number): void
  /** Called with new lists of a connection before they are used. Must not reject. */
  prepare(id: string, lists: RawLists): Promise<void>
  onChange(id: string): void
  onTools(id: string): void
}

type Entry = { spec: ConnectionSpec; readonly connection: Connection; readonly log: string }

const maxListPages = 1000
const maxListBytes = 64 * 1024 * 1024

export function createServers(parts: ServersParts): Servers {
  const { clock } = parts
  const entries = new Map<string, Entry>()
  const inProcess = new Map<string, InProcessServer>()
  const endings = new Map<string, Promise<void>>()
  const supervision = { ...defaultSupervision, ...parts.supervision }
  const client = { name: gatewayName, version: parts.version }
  const listLimits = () => ({ pages: maxListPages, items: parts.limits().tools, bytes: maxListBytes })
  const folders = createWorkingFolders(parts.folder)
  let closed = false
  let connected = 0

  return {
    reconcile,
    list,
    find,
    lists,
    facts,
    logs,
    send,
    attach: (server) => void inProcess.set(server.name, server),
    attached: () => [...inProcess.values()],
    reconnect,
    settled,
    introduced,
    trial,
    forget,
    close,
  }

  function reconcile(specs: readonly ConnectionSpec[]): void {
    if (closed) return
    const wanted = new Map(specs.map((spec) => [spec.id, spec]))
    for (const [id, entry] of entries) {
      const spec = wanted.get(id)
      if (!spec || !isSameLink(spec, entry.spec)) drop(id, entry)
    }
    for (const spec of specs) {
      const entry = entries.get(spec.id)
      if (entry) entry.spec = spec
      if (!entry) entries.set(spec.id, { spec, connection: connect(spec), log: `${parts.instance}-${++connected}` })
    }
  }

  function drop(id: string, entry: Entry): void {
    entries.delete(id)
    const ending = entry.connection.close(closedBecause('its configuration was changed or removed')).finally(() => {
      if (endings.get(id) === ending) endings.delete(id)
    })
    endings.set(id, ending)
    parts.onTools(id)
  }

  function connect(spec: ConnectionSpec): Connection {
    const memoryKey = `way:${spec.id}:${spec.fingerprint}`
    return createConnection(spec.definition, {
      id: spec.id,
      name: spec.name,
      instance: parts.instance,
      client,
      clock,
      log: parts.log,
      children: parts.children,
      workingFolder: folders.of(spec.id),
      trusted: spec.trusted,
      limits: { ...listLimits(), message: parts.limits().message },
      egress: { privateAllowed: spec.trusted, allow: parts.egressAllow() },
      supervision,
      resolve: () => parts.resolve(spec.id, entries.get(spec.id)?.spec ?? spec),
      masking: parts.masking,
      onSecretFound: (found) => parts.onSecretFound(spec.id, found),
      after: endings.get(spec.id) ?? Promise.resolve(),
      recall: async () => toRemembered(await parts.memory.get(memoryKey)),
      remember: (known) => parts.memory.set(memoryKey, toText(known)),
      prepare: (lists) => parts.prepare(spec.id, lists),
      onChange: () => parts.onChange(spec.id),
      onTools: () => parts.onTools(spec.id),
    })
  }

  function list(): ServerLinkStatus[] {
    return [...entries.values()].map(toStatus)
  }

  function find(id: string): ServerLinkStatus | undefined {
    const entry = entries.get(id)
    return entry && toStatus(entry)
  }

  function lists(id: string): RawLists | undefined {
    const status = entries.get(id)?.connection.status()
    return status && offeredLists(status)
  }

  function facts(id: string): ServerFacts | undefined {
    return entries.get(id)?.connection.status().link?.facts
  }

  function logs(id: string): KeptLogs {
    const { connection, log } = get(id)
    const { lines, ...kept } = connection.logs.read()
    return { ...kept, log, lines: lines.map(toPlainLine) }
  }

  async function send(permit: Permit, caller: Caller, events: SendEvents): Promise<Answer> {
    const own = inProcess.get(permit.connection)
    if (own) return own.call(permit, caller)
    const { spec, connection } = get(permit.connection)
    if (permit.method === 'resources/subscribe') return follow(permit, connection, caller)
    const { timeout } = spec.definition
    // `tasks/result` is answered when the task ends, so only the maximum applies.
    const timeoutMs = permit.method === 'tasks/result' ? timeout.maximum : timeout.call
    const limits = { signal: caller.signal, timeoutMs }
    const task = isTaskMethod(permit.method) ? permit.original : undefined
    const request = {
      ...events,
      ...limits,
      caller,
      onProgress: caller.onProgress,
      maximumMs: timeout.maximum,
      meta: toSentMeta(permit),
      mirrored: permit.mirrored,
      task,
    }
    // A task exists only on the link that started it. Its questions name the task, so the link can be shared.
    const shared = task !== undefined || permit.input?.task !== undefined
    return connection.use(
      async (link) => {
        const ask = () => link.request(permit.method, toParams(permit), request)
        try {
          if (caller.logLevel && caller.logLevel !== 'any') await link.logFrom(caller.logLevel, limits)
          return await ask().catch((error: unknown) => {
            if (permit.risk !== 'read' || toGatewayError(error).details.dropped !== true) throw error
            events.onResent() // a reading call may be sent again
            return ask()
          })
        } catch (error) {
          const failure = toGatewayError(error)
          if (isGone(failure)) connection.suspect(link, failure)
          throw failure
        }
      },
      { ...limits, shared },
    )
  }

  async function follow(permit: Permit, connection: Connection, { subscriber }: Caller): Promise<Answer> {
    if (!subscriber) throw new GatewayError('method-not-found', 'This client cannot receive resource updates')
    await connection.follow(permit.original, subscriber)
    return toResultAnswer({})
  }

  function reconnect(id: string): void {
    get(id).connection.reconnect()
  }

  function settled(id: string, signal: AbortSignal): Promise<void> {
    return get(id).connection.settled(signal)
  }

  function introduced(ids: Iterable<string>, milliseconds: number): Promise<void> | undefined {
    const now = clock.now()
    const waits: Promise<void>[] = []
    for (const id of ids) {
      const connection = entries.get(id)?.connection
      if (!connection) continue
      const { state, attempt, lists: known, since } = connection.status()
      const left = since + milliseconds - now
      if (state === 'connecting' && attempt <= 1 && !known && left > 0) waits.push(settledWithin(connection, left))
    }
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => {})
  }

  async function settledWithin(connection: Connection, milliseconds: number): Promise<void> {
    const late = new AbortController()
    const cancel = clock.after(milliseconds, () => late.abort())
    await connection.settled(late.signal)
    cancel()
  }

  function trial(wanted: Trial, signal: AbortSignal): Promise<TrialOutcome> {
    const trialParts = {
      client,
      instance: parts.instance,
      clock,
      children: parts.children,
      folders,
      masking: parts.masking,
      proofTimeoutMs: supervision.proofTimeoutMs,
      maxMessageBytes: parts.limits().message,
      listLimits: listLimits(),
      egress: { privateAllowed: wanted.trusted, allow: parts.egressAllow() },
      resolve: () => parts.resolve(trialId, wanted),
    }
    return tryDefinition(wanted, trialParts, signal)
  }

  async function forget(id: string): Promise<void> {
    if (entries.has(id)) return
    await endings.get(id)
    await folders.setAside(id, clock.now())
  }

  async function close(): Promise<void> {
    closed = true
    const reason = closedBecause('the gateway is stopping')
    const ending = [...entries.values()].map(({ connection }) => connection.close(reason))
    await Promise.all([...ending, ...endings.values()])
  }

  function get(id: string): Entry {
    const entry = entries.get(id)
    if (entry) return entry
    throw new GatewayError('server-not-found', `No server is named ${id}`, {}, { reach: 'unsent' })
  }
}

/** The server is unreachable or rejects our credentials. Any other error fails only its own call. */
function isGone({ code, details }: GatewayError): boolean {
  if (code === 'server-auth') return details.status === 401
  return code === 'connect-failed' && details.status === undefined
}

function isSameLink(a: ConnectionSpec, b: ConnectionSpec): boolean {
  return a.fingerprint === b.fingerprint && a.definition.enabled === b.definition.enabled
}

/** For example `legacy` or `legacy conversational`. */
function toText({ way, conversational }: Remembered): string {
  return `${way ?? ''}${conversational ? ' conversational' : ''}`
}

function toRemembered(text = ''): Remembered {
  const [way, mark] = text.split(' ')
  const known = way === 'modern' || way === 'legacy' || way === 'sse' ? way : undefined
  return { way: known, conversational: mark === 'conversational' }
}

function toStatus({ spec, connection }: Entry): ServerLinkStatus {
  const status = connection.status()
  const { link, failure, lastSuccessAt, nextAttemptAt, progress } = status
  return {
    id: spec.id,
    name: spec.name,
    scope: spec.scope,
    transport: spec.definition.transport,
    enabled: spec.definition.enabled,
    state: status.state,
    since: toIso(status.since),
    complete: listKinds.every((kind) => status.lists?.[kind].incomplete === undefined),
    ...(spec.definition.title !== undefined && { title: spec.definition.title }),
    ...(spec.definition.description !== undefined && { description: spec.definition.description }),
    ...(failure && { error: failure }),
    ...(lastSuccessAt !== undefined && { lastSuccessAt: toIso(lastSuccessAt) }),
    ...(link && { protocol: link.facts.revision }),
    ...(status.conversational && { conversational: true }),
    ...(link?.facts.serverInfo && { serverInfo: link.facts.serverInfo }),
    ...(status.attempt > 0 && { attempt: status.attempt }),
    ...(nextAttemptAt !== undefined && { nextAttemptAt: toIso(nextAttemptAt) }),
    ...(progress !== undefined && { progress }),
  }
}
