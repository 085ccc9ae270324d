import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type ConnectionState, findDownloader, type ServerDefinition, type ServerFailure } from '../contract/server.ts'
import { type BackoffSettings, backoffDelay } from '../lib/backoff.ts'
import { type Clock, sleep } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { onAbort } from '../lib/signals.ts'
import type { Masking } from '../masking/masking.ts'
import { countOf } from '../shared/words.ts'
import type { Subscriber } from '../wire/caller.ts'
import type { Implementation } from '../wire/codec.ts'
import { toFailure } from './failure.ts'
import type { EgressRules } from './http/egress.ts'
import { closedBecause, type Link, type LinkParts, type Way } from './link.ts'
import { type ListKind, type ListLimits, listKinds, noLists, type RawLists, readLists } from './listing.ts'
import { createServerLogs, type ServerLogs } from './logs.ts'
import { negotiate } from './negotiate.ts'
import { createLinkPool, type LinkPool } from './pool.ts'
import { watchSilence } from './proof.ts'
import { createRefresher } from './refresh.ts'
import { createSubscriptions } from './subscriptions.ts'
import type { ChildRecords } from './transports/stdio.ts'

/** Intervals and limits of the supervision of one server. Tests use shorter ones. */
export type SupervisionSettings = {
  readonly backoff: BackoffSettings
  /** A link that ends sooner than this is a flap. */
  readonly stableMs: number
  /** Number of flaps in a row after which automatic reconnects stop. */
  readonly flaps: number
  readonly idleMs: number
  readonly proofTimeoutMs: number
  readonly refreshMs: number
}

export const defaultSupervision: SupervisionSettings = {
  backoff: { first: 500, most: 60_000, factor: 2 },
  stableMs: 30_000,
  flaps: 5,
  idleMs: 30_000,
  proofTimeoutMs: 10_000,
  refreshMs: 200,
}

export type ConnectionParts = {
  readonly id: string
  /** The server's name in the configuration; `id` also contains the scope. */
  readonly name: string
  readonly instance: string
  readonly client: Implementation
  readonly clock: Clock
  readonly log: Log
  readonly children: ChildRecords
  /** Working folder of a program whose definition has no `cwd`. */
  readonly workingFolder: string
  /** The address or command was configured in a scope of administrators. */
  readonly trusted: boolean
  readonly limits: ListLimits & { readonly message: number }
  readonly egress: EgressRules
  readonly supervision: SupervisionSettings
  /** The definition with `${NAME}` filled in; throws `variable-missing`. */
  resolve(): ServerDefinition
  readonly masking: Masking
  onSecretFound(found: number): void
  /** The end of the previous connection to the same server: this connection starts after it. */
  readonly after: Promise<void>
  recall(): Promise<Remembered>
  remember(known: Remembered): void
  /** Called with new lists before they are used. */
  prepare(lists: RawLists): Promise<void>
  onChange(): void
  onTools(): void
}

/** Facts about the server that an earlier link found out. */
export type Remembered = { readonly way?: Way | undefined; readonly conversational?: boolean }

export type ConnectionStatus = {
  readonly state: ConnectionState
  readonly since: number
  readonly failure: ServerFailure | undefined
  readonly lastSuccessAt: number | undefined
  readonly link: Link | undefined
  readonly attempt: number
  readonly nextAttemptAt: number | undefined
  readonly progress: string | undefined
  readonly lists: RawLists | undefined
  /** The server's questions do not name their call, so every call gets a separate link. */
  readonly conversational: boolean
}

/** `shared`: use the first link even if the server is conversational. */
type UseOptions = { readonly signal: AbortSignal; readonly timeoutMs: number; readonly shared: boolean }

/** The supervised connection to one server: it reconnects after a failure. */
export type Connection = {
  status(): ConnectionStatus
  readonly logs: Pick<ServerLogs, 'read'>
  /** Runs on the first link or, for a conversational server, on an unused one. Rejects with the reason if there is no link. */
  use<Result>(run: (link: Link) => Promise<Result>, options: UseOptions): Promise<Result>
  /** Subscribes to changes of a resource. The subscription is renewed on later links. */
  follow(uri: string, subscriber: Subscriber): Promise<void>
  /** A call could not reach the server: closes the link and reconnects. */
  suspect(link: Link, error: GatewayError): void
  /** Connects immediately and resets the counters of attempts and flaps. */
  reconnect(): void
  /** Resolves when the current attempt has succeeded or failed, or immediately if there is none. */
  settled(signal: AbortSignal): Promise<void>
  /** Calls that are still running fail with the reason. */
  close(reason: GatewayError): Promise<void>
}

export function createConnection(definition: ServerDefinition, parts: ConnectionParts): Connection {
  const { clock, supervision } = parts
  const logs = createServerLogs(256 * 1024, parts.masking)
  let status: ConnectionStatus = {
    state: definition.enabled ? 'connecting' : 'disabled',
    since: clock.now(),
    failure: undefined,
    lastSuccessAt: undefined,
    link: undefined,
    attempt: 0,
    nextAttemptAt: undefined,
    progress: undefined,
    lists: undefined,
    conversational: false,
  }
  const subscriptions = createSubscriptions({ current: () => status.link })
  let pool = createPool()
  let life = new AbortController()
  let running: Promise<void> = parts.after
  let flaps = 0
  let closed = false
  const waiters = new Set<() => void>()
  /** Lists that the server reported as changed before the first reading was complete. */
  const changedEarly = new Set<ListKind>()
  let refresh: (kinds: readonly ListKind[]) => void = () => {}
  let lose: (error: GatewayError) => void = () => {}

  if (definition.enabled) start()
  return { status: () => status, logs, use, follow, suspect, reconnect, settled, close }

  function start(): void {
    life = new AbortController()
    const { signal } = life
    running = running.then(() => run(signal)).catch((error: unknown) => onDefect(error))
  }

  function set(change: Partial<ConnectionStatus>): void {
    const since = change.state !== undefined && change.state !== status.state ? clock.now() : status.since
    const offered = offeredLists(status)
    status = { ...status, ...change, since }
    if (status.state !== 'connecting') wake()
    // Listeners of `onChange` read the tools, so the tools are updated first.
    if (offeredLists(status) !== offered) parts.onTools()
    parts.onChange()
  }

  function wake(): void {
    for (const waiter of waiters) waiter()
  }

  /** Connects again and again until the connection is closed or automatic reconnects stop. */
  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const lost = await attempt(signal)
      if (signal.aborted) return
      if (isFinal(lost)) return set({ ...offline, state: stateOf(lost), failure: toMaskedFailure(lost) })
      if (flaps >= supervision.flaps) return stopReconnecting(lost)
      const wasConnected = status.link !== undefined
      const delay = backoffDelay(wasConnected ? flaps + 1 : status.attempt, supervision.backoff)
      set({
        ...offline,
        state: wasConnected ? 'disconnected' : 'failed',
        failure: toMaskedFailure(lost),
        nextAttemptAt: clock.now() + delay,
      })
      await pause(delay, signal)
    }
  }

  /** One attempt to connect; if it succeeds, waits until the link ends. Returns the reason of the failure or the end. */
  async function attempt(signal: AbortSignal): Promise<GatewayError> {
    const lost = Promise.withResolvers<GatewayError>()
    lose = lost.resolve
    set({ state: 'connecting', attempt: status.attempt + 1, nextAttemptAt: undefined })
    let link: Link | undefined
    let over: GatewayError | undefined
    const stopProgress = showProgress()
    try {
      link = await open(signal, lost.resolve)
      const lists = await read(link, { kinds: listKinds, known: noLists }, signal)
      await parts.prepare(lists)
      remember(link)
      stopProgress()
      const now = clock.now()
      set({ state: 'connected', link, lists, failure: undefined, lastSuccessAt: now, attempt: 0, progress: undefined })
      subscriptions.renew(link)
      if (changedEarly.size > 0) refresh([...changedEarly])
      over = await live(link, lost.promise, signal)
      return over
    } catch (error) {
      over = toGatewayError(error)
      return over
    } finally {
      stopProgress()
      const ended = signal.aborted ? toGatewayError(signal.reason) : undefined
      if (ended) await renewPool(ended) // otherwise calls on separate links continue
      if (link) await link.close(ended ?? toUnavailable(over))
    }
  }

  async function open(signal: AbortSignal, onClose: (error: GatewayError) => void): Promise<Link> {
    const known = await parts.recall()
    if (known.conversational) set({ conversational: true })
    changedEarly.clear()
    refresh = createRefresh(signal)
    const linkParts = {
      ...toLinkParts(),
      onListChanged: (kinds: readonly ListKind[]) => refresh(kinds),
      onRenewed: () => status.link && subscriptions.renew(status.link),
      onClose,
    }
    const timeoutMs =
      status.lastSuccessAt === undefined ? toFirstTimeout(linkParts.definition) : definition.timeout.connect
    return negotiate(linkParts, { signal, timeoutMs, remembered: known.way })
  }

  /** Opens one more link, for one call at a time. List changes are ignored here: the first link reports them too. */
  async function openExtra(signal: AbortSignal): Promise<Link> {
    let opened: Link | undefined
    const onClose = () => opened && pool.drop(opened)
    const linkParts = { ...toLinkParts(), onListChanged() {}, onRenewed() {}, onClose }
    const remembered = status.link?.way
    opened = await negotiate(linkParts, { signal, timeoutMs: definition.timeout.connect, remembered })
    return opened
  }

  function remember(link: Link): void {
    parts.remember({ way: link.way, conversational: status.conversational })
  }

  function onAmbiguous(): void {
    if (status.conversational) return
    set({ conversational: true })
    if (status.link) remember(status.link)
    parts.log.info({ server: parts.id }, 'this server asks questions: every call gets a separate link')
  }

  function toLinkParts(): Omit<LinkParts, 'onListChanged' | 'onRenewed' | 'onClose'> {
    const resolved = parts.resolve()
    return {
      connection: parts.id,
      definition: resolved,
      client: parts.client,
      instance: parts.instance,
      clock,
      egress: parts.egress,
      logs,
      children: parts.children,
      workingFolder: parts.workingFolder,
      trusted: parts.trusted,
      maxMessageBytes: parts.limits.message,
      proofTimeoutMs: supervision.proofTimeoutMs,
      masking: parts.masking,
      onSecretFound: parts.onSecretFound,
      onResourceUpdated: (uri) => subscriptions.updated(uri),
      onAmbiguous,
    }
  }

  /** Waits for the end of a link, checks the server when it is silent, and counts a short life as a flap. */
  async function live(link: Link, lost: Promise<GatewayError>, signal: AbortSignal): Promise<GatewayError> {
    const since = clock.monotonic()
    const proof = Promise.withResolvers<GatewayError>()
    const stopWatching = watchSilence(link, { clock, ...supervision }, proof.resolve)
    const unlink = onAbort(signal, () => proof.resolve(toGatewayError(signal.reason)))
    const reason = await Promise.race([lost, proof.promise])
    unlink()
    stopWatching()
    flaps = clock.monotonic() - since < supervision.stableMs ? flaps + 1 : 0
    return reason
  }

  function read(
    from: Link,
    wanted: { kinds: readonly ListKind[]; known: RawLists },
    signal: AbortSignal,
  ): Promise<RawLists> {
    return readLists(from, wanted, parts.limits, { signal, clock, timeoutMs: definition.timeout.connect })
  }

  function createRefresh(signal: AbortSignal): (kinds: readonly ListKind[]) => void {
    const onFailure = ({ code }: GatewayError) => parts.log.warn({ server: parts.id, code }, 'list not refreshed')
    const reread = (kinds: readonly ListKind[]) => rereadLists(kinds, signal)
    return createRefresher({ clock, pauseMs: supervision.refreshMs, signal, reread, onFailure })
  }

  async function rereadLists(kinds: readonly ListKind[], signal: AbortSignal): Promise<void> {
    const { link } = status
    if (!link) {
      for (const kind of kinds) changedEarly.add(kind)
      return
    }
    const lists = await read(link, { kinds, known: status.lists ?? noLists }, signal)
    await parts.prepare(lists)
    if (status.link === link) set({ lists })
  }

  function stopReconnecting(lost: GatewayError): void {
    const failure = toMaskedFailure(lost)
    const message = `${failure.message}; connection dropped ${countOf(flaps, 'time')}; automatic reconnects stopped`
    const hint = `Repair the server, then run \`sallyport servers reconnect ${parts.name}\`, or change its configuration.`
    set({ ...offline, state: 'failed', failure: { ...failure, message, hint } })
  }

  function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    return sleep(clock, milliseconds, signal).catch(() => {}) // `run` checks the signal
  }

  function showProgress(): () => void {
    const since = clock.monotonic()
    let cancel = clock.after(1000, tick)
    function tick(): void {
      const seconds = Math.round((clock.monotonic() - since) / 1000)
      const downloader = findDownloader(definition)
      const download = downloader === undefined ? '' : `, ${downloader} may be downloading the package`
      set({ progress: `starting for ${seconds} s${download}` })
      cancel = clock.after(1000, tick)
    }
    return () => cancel()
  }

  function link(): Link {
    if (status.link) return status.link
    const why = status.failure ? `: ${status.failure.message}` : ''
    const message = `The server is ${status.state}${why}`
    throw new GatewayError('server-unavailable', message, { state: status.state }, { reach: 'unsent' })
  }

  function use<Result>(run: (link: Link) => Promise<Result>, { shared, ...options }: UseOptions): Promise<Result> {
    return pool.use(run, { ...options, alone: status.conversational && !shared })
  }

  function createPool(): LinkPool {
    return createLinkPool({ clock, primary: link, open: openExtra })
  }

  /** A restart or a close ends all links, also those of single calls. */
  async function renewPool(reason: GatewayError): Promise<void> {
    const closing = pool
    pool = createPool()
    await closing.close(reason)
  }

  async function follow(uri: string, subscriber: Subscriber): Promise<void> {
    const current = link()
    const { resources } = current.facts.capabilities
    if (current.facts.era === 'legacy' && !(isObject(resources) && resources.subscribe === true)) {
      throw new GatewayError(
        'method-not-found',
        'The server does not support subscriptions to resources',
        {},
        { reach: 'unsent' },
      )
    }
    await subscriptions.add(uri, subscriber, current)
  }

  function suspect(suspected: Link, error: GatewayError): void {
    if (status.link === suspected) return lose(error)
    pool.drop(suspected)
  }

  function reconnect(): void {
    if (closed || !definition.enabled) return
    life.abort(closedBecause('a reconnect was requested'))
    flaps = 0
    set({ ...offline, state: 'connecting', failure: undefined, attempt: 0 })
    start()
  }

  function settled(signal: AbortSignal): Promise<void> {
    if (status.state !== 'connecting') return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    waiters.add(resolve)
    const unlink = onAbort(signal, resolve)
    return promise.finally(() => {
      unlink()
      waiters.delete(resolve)
    })
  }

  async function close(reason: GatewayError): Promise<void> {
    closed = true
    life.abort(reason)
    await running
    await pool.close(reason) // links that calls opened during the close
    wake()
  }

  function onDefect(error: unknown): void {
    parts.log.error(
      { server: parts.id, error: toGatewayError(error).message },
      'unhandled error in the supervision of a server',
    )
    set({ ...offline, state: 'failed', failure: toMaskedFailure(error) })
  }

  /** The error text may contain the address or command, and with it the secrets that were filled in. */
  function toMaskedFailure(error: unknown): ServerFailure {
    const failure = toFailure(error, clock.now(), { output: logs.lastLines(), server: parts.name })
    return { ...failure, message: parts.masking.text(failure.message) }
  }
}

/** The error of calls that were running when the connection failed. */
function toUnavailable(over: GatewayError | undefined): GatewayError | undefined {
  return over && new GatewayError('server-unavailable', over.message, {}, { cause: over })
}

const offline = { link: undefined, nextAttemptAt: undefined, progress: undefined } as const

/** The lists stay available during a short interruption. Without further attempts they are withdrawn. */
export function offeredLists(status: ConnectionStatus): RawLists | undefined {
  if (status.state === 'disabled' || status.state === 'auth-required') return undefined
  if (status.state === 'failed' && status.nextAttemptAt === undefined) return undefined
  return status.lists
}

/** Errors that another attempt cannot fix: a person has to change something. */
function isFinal(lost: GatewayError): boolean {
  return lost.code === 'server-auth' || lost.code === 'variable-missing' || lost.code === 'egress-denied'
}

function stateOf(lost: GatewayError): ConnectionState {
  return lost.code === 'server-auth' ? 'auth-required' : 'failed'
}

/** Timeout of the first attempt, the same for a server that is added and one that is only tried. */
export function toFirstTimeout(definition: ServerDefinition): number {
  return findDownloader(definition) === undefined ? definition.timeout.connect : definition.timeout.start
}
