import { GatewayError } from '../../contract/errors.ts'
import { backoffDelay } from '../../lib/backoff.ts'
import { type Clock, sleep } from '../../lib/clock.ts'
import { toModernHeaders, toModernMeta } from '../../wire/modern.ts'
import { proveGateway } from '../client/address.ts'
import { demandSafeFolder, findGatewayFile } from '../client/data-folder.ts'
import { version } from '../version.ts'
import type { AgentToken } from './agent-token.ts'
import { type Background, startBackground, toLogFile } from './background.ts'
import type { Http } from './http.ts'

/** A gateway with an open presence stream, which keeps the gateway from ending as unused. */
export type Joined = { readonly url: string; readonly token: string; readonly lost: AbortSignal }

export type Joining = {
  /** The current gateway. If it has ended, finds or starts another. Parallel calls share one attempt. */
  join(): Promise<Joined>
  /** The current gateway, or a running one. Starts no gateway. */
  find(): Promise<Joined | undefined>
  current(): Joined | undefined
  /** Drops this gateway after a failure: the next call looks for a gateway again. */
  distrust(gateway: Joined): void
  close(): void
}

export type JoiningParts = {
  readonly dataFolder: string
  readonly config: string | undefined
  readonly lingerSeconds: number
  /** From `--token`; undefined to use the agent token in the data folder. */
  readonly token: string | undefined
  readonly agentToken: AgentToken
  readonly environment: NodeJS.ProcessEnv
  readonly http: Http
  readonly clock: Clock
  talk(line: string): void
}

/** Maximum time for a gateway to start, including the time for an old one to end. */
const startMs = 60_000
const answerMs = 10_000
const pollMs = 50
/** Delay before the next start, if another gateway has the lock or is ending. */
const startAgain = { first: 500, most: 4000, factor: 2 }

/** Finds or starts the gateway of a data folder. If several start at once, the lock of the folder chooses one. */
export function createJoining(parts: JoiningParts): Joining {
  const { dataFolder, clock, http } = parts
  const closing = new AbortController()
  let current: Held | undefined
  let finding: Promise<Joined | undefined> | undefined
  let joining: Promise<Joined> | undefined
  /** False for a gateway that was started with `serve`: the user restarts it, and ours would block the data folder. */
  let mayStart = true

  async function look(): Promise<Joined | undefined> {
    demandSafeFolder(dataFolder)
    const note = findGatewayFile(dataFolder)
    if (note === undefined || !(await isOurs(note.url))) return undefined
    const held = await holdWithToken(note.url)
    if (held === undefined) return undefined
    mayStart = note.lingers
    current = held
    parts.talk(`Connected to the gateway at ${note.url}.`)
    return current
  }

  /** Called before a token is sent: `gateway.json` may be old, and another program may use the port. */
  async function isOurs(url: string): Promise<boolean> {
    return proveGateway(dataFolder, url).then(
      () => true,
      (error: unknown) => unlessBroken(error) ?? false,
    )
  }

  async function holdWithToken(url: string): Promise<Held | undefined> {
    const token = parts.token ?? (await parts.agentToken.get(url).catch(unlessBroken))
    if (token === undefined) return undefined
    const held = await hold(url, token)
    if (held !== 'refused') return held
    if (parts.token !== undefined) throw new GatewayError('token-invalid', `${url} does not accept the given token`)
    const other = await parts.agentToken.replace(url, token)
    if (other === undefined) return undefined
    const again = await hold(url, other)
    return again === 'refused' ? undefined : again
  }

  /** Opens an empty subscription. While it is open, the gateway does not end as unused, and we notice when it ends. */
  async function hold(url: string, token: string): Promise<Held | 'refused' | undefined> {
    const opened = Promise.withResolvers<'open' | 'refused' | undefined>()
    const lost = new AbortController()
    const released = new AbortController()
    const params = { notifications: {}, _meta: toModernMeta({ name: 'sallyport-stdio', version }) }
    const cancel = clock.after(answerMs, () => released.abort())
    http
      .send({
        method: 'POST',
        url: new URL('/mcp', url),
        headers: { ...toModernHeaders('subscriptions/listen', params), ...credentials(token) },
        body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'present', method: 'subscriptions/listen', params })),
        signal: AbortSignal.any([closing.signal, released.signal]),
        onEvent() {
          cancel()
          opened.resolve('open')
        },
      })
      .then(
        ({ status }) => opened.resolve(status === 401 ? 'refused' : undefined),
        () => opened.resolve(undefined),
      )
      .finally(() => {
        cancel()
        lost.abort()
      })
    const answer = await opened.promise
    return answer === 'open' ? { url, token, lost: lost.signal, release: () => released.abort() } : answer
  }

  function find(): Promise<Joined | undefined> {
    if (current && !current.lost.aborted) return Promise.resolve(current)
    finding ??= look().finally(() => {
      finding = undefined
    })
    return finding
  }

  /** Looks for a gateway and starts one, until one answers. It does not matter which process started it. */
  async function findOrStart(): Promise<Joined> {
    const deadline = clock.monotonic() + startMs
    let started: Background | undefined
    let starts = 0
    let startAt = 0
    try {
      while (true) {
        const found = await find()
        if (found) return found
        if (!mayStart) throw gone(dataFolder)
        const failure = started?.failure()
        if (failure && !isPassing(failure)) throw failure
        if (clock.monotonic() > deadline) throw failure ?? tooSlow(dataFolder)
        if (failure) {
          started = undefined
          startAt = clock.monotonic() + backoffDelay(starts, startAgain)
        }
        if (started === undefined && clock.monotonic() >= startAt) {
          if (starts === 0)
            parts.talk(`No gateway runs on ${dataFolder}: starting a gateway. Its log is ${toLogFile(dataFolder)}.`)
          starts += 1
          started = startBackground(parts)
        }
        await sleep(clock, pollMs, closing.signal)
      }
    } finally {
      started?.release()
    }
  }

  return {
    find,
    join() {
      if (current && !current.lost.aborted) return Promise.resolve(current)
      joining ??= findOrStart().finally(() => {
        joining = undefined
      })
      return joining
    },
    current: () => (current && !current.lost.aborted ? current : undefined),
    distrust(gateway) {
      if (current !== gateway) return
      current.release()
      current = undefined
    },
    close: () => closing.abort(new GatewayError('shutting-down', 'The program is ending')),
  }
}

/** Another gateway has the lock, or ours ended before it was used: a retry may succeed. */
function isPassing({ code }: GatewayError): boolean {
  return code === 'data-locked' || code === 'shutting-down'
}

type Held = Joined & { release(): void }

/** For a gateway given by address: it is never started here and needs no presence stream. */
export function joinFixed(url: string, token: string): Joining {
  const gateway: Joined = { url, token, lost: new AbortController().signal }
  return {
    join: async () => gateway,
    find: async () => gateway,
    current: () => gateway,
    distrust() {},
    close() {},
  }
}

export function credentials(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
}

/** Undefined if no token could be read, because the program is not this folder's gateway. Throws for an unsafe folder. */
function unlessBroken(error: unknown): undefined {
  if (!(error instanceof GatewayError) || ['forbidden', 'data-unsafe'].includes(error.code)) throw error
  return undefined
}

function gone(folder: string): GatewayError {
  return new GatewayError(
    'unreachable',
    `The gateway of ${folder} has ended. It was started with \`serve\`, so start it again yourself`,
  )
}

function tooSlow(folder: string): GatewayError {
  const message = `No gateway started within ${startMs / 1000} s: see ${toLogFile(folder)}`
  return new GatewayError('unreachable', message)
}
