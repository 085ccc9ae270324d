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

/** A gateway that we hold on to: it does not end for want of users meanwhile. */
export type Joined = { readonly url: string; readonly token: string; readonly lost: AbortSignal }

export type Joining = {
  /** The gateway in use. If there is none any more, another is joined or started; all who ask at once share that. */
  join(): Promise<Joined>
  /** The gateway in use, or one that runs; starts none. */
  find(): Promise<Joined | undefined>
  current(): Joined | undefined
  /** This one did not answer as it should: the next who asks looks again. */
  distrust(gateway: Joined): void
  close(): void
}

export type JoiningParts = {
  readonly dataFolder: string
  readonly config: string | undefined
  readonly lingerSeconds: number
  /** Given by hand; else an own one is kept in the folder. */
  readonly token: string | undefined
  readonly agentToken: AgentToken
  readonly environment: NodeJS.ProcessEnv
  readonly http: Http
  readonly clock: Clock
  talk(line: string): void
}

/** Longest that a gateway may take to start, or another one to make room for it. */
const startMs = 60_000
const answerMs = 10_000
const pollMs = 50
/** After a lost race: whoever won needs a moment, and whoever is ending too. */
const startAgain = { first: 500, most: 4000, factor: 2 }

/** The gateway of a data folder. The lock of the folder decides which of several that start at once is the one. */
export function createJoining(parts: JoiningParts): Joining {
  const { dataFolder, clock, http } = parts
  const closing = new AbortController()
  let current: Held | undefined
  let finding: Promise<Joined | undefined> | undefined
  let joining: Promise<Joined> | undefined
  /** A gateway that somebody runs by hand is theirs to start again: one of ours would stand in its way. */
  let mayStart = true

  async function look(): Promise<Joined | undefined> {
    demandSafeFolder(dataFolder)
    const note = findGatewayFile(dataFolder)
    if (note === undefined || !(await isOurs(note.url))) return undefined
    const held = await holdWithToken(note.url)
    if (held === undefined) return undefined
    mayStart = note.lingers
    current = held
    parts.talk(`Joined the gateway at ${note.url}.`)
    return current
  }

  /** Asked before any token is sent: the note may be old, and its port another program's. */
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
    if (parts.token !== undefined) throw new GatewayError('token-invalid', `${url} does not take the given token`)
    const other = await parts.agentToken.replace(url, token)
    if (other === undefined) return undefined
    const again = await hold(url, other)
    return again === 'refused' ? undefined : again
  }

  /** A subscription to nothing: as long as it is open, the gateway knows that somebody is there, and we that it is. */
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

  /** Looks and starts in turn until one is there: whoever wins the lock, we join it. */
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
            parts.talk(`No gateway runs on ${dataFolder}: starting one. It writes to ${toLogFile(dataFolder)}.`)
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

/** Another gateway was faster, or ours was too fast for us: the next attempt may go better. */
function isPassing({ code }: GatewayError): boolean {
  return code === 'data-locked' || code === 'shutting-down'
}

type Held = Joined & { release(): void }

/** A gateway somewhere else: nobody here starts it, and nothing has to be held. */
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

/** Whoever does not give us a token is not the gateway of this folder. Trouble with the folder is another matter. */
function unlessBroken(error: unknown): undefined {
  if (!(error instanceof GatewayError) || ['forbidden', 'data-unsafe'].includes(error.code)) throw error
  return undefined
}

function gone(folder: string): GatewayError {
  return new GatewayError(
    'unreachable',
    `The gateway of ${folder} has ended; it was started by hand, so it is left to you`,
  )
}

function tooSlow(folder: string): GatewayError {
  const message = `No gateway came up within ${startMs / 1000} s: ${toLogFile(folder)} may say why`
  return new GatewayError('unreachable', message)
}
