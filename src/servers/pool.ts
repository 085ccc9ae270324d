import { GatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Link } from './link.ts'

/** The links of one server. Calls share the first, unless its questions do not say which call they belong to. */
export type LinkPool = {
  use<Result>(run: (link: Link) => Promise<Result>, options: PoolOptions): Promise<Result>
  /** This link is gone. */
  drop(link: Link): void
  close(): Promise<void>
}

type PoolOptions = {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** On a link that no other call uses meanwhile. */
  readonly alone: boolean
}

export type PoolParts = {
  readonly clock: Clock
  /** The link that is there anyway. */
  primary(): Link
  open(signal: AbortSignal): Promise<Link>
}

const maxLinks = 16
const maxWaiting = 256
const idleMs = 60_000

export function createLinkPool(parts: PoolParts): LinkPool {
  const extras = new Set<Link>()
  const users = new Map<Link, number>()
  const closing = new AbortController()
  const idle = new Map<Link, () => void>()
  const waiting = new Set<(error?: GatewayError) => void>()
  const endings = new Set<Promise<void>>()
  let opening = 0

  return { use, drop, close }

  async function use<Result>(run: (link: Link) => Promise<Result>, options: PoolOptions): Promise<Result> {
    const link = options.alone ? await takeFree(options) : hold(parts.primary())
    try {
      return await run(link)
    } finally {
      giveBack(link)
    }
  }

  async function takeFree(options: PoolOptions): Promise<Link> {
    for (;;) {
      const free = [parts.primary(), ...extras].find((link) => !users.has(link))
      if (free) return hold(free)
      if (extras.size + opening + 1 < maxLinks) return hold(await open())
      await turn(options)
    }
  }

  function hold(link: Link): Link {
    users.set(link, (users.get(link) ?? 0) + 1)
    idle.get(link)?.()
    idle.delete(link)
    return link
  }

  async function open(): Promise<Link> {
    opening++
    try {
      const link = await parts.open(closing.signal)
      extras.add(link)
      return link
    } catch (error) {
      const message = 'No further link to the server could be opened'
      throw new GatewayError('server-unavailable', message, { sent: false }, { cause: error })
    } finally {
      opening--
      next()
    }
  }

  function giveBack(link: Link): void {
    const left = (users.get(link) ?? 1) - 1
    if (left > 0) return void users.set(link, left)
    users.delete(link)
    const retireLater = () => parts.clock.after(idleMs, () => retire(link))
    if (extras.has(link)) idle.set(link, retireLater())
    next()
  }

  function next(): void {
    const [first] = waiting
    first?.()
  }

  /** Resolves when it may be worth looking again. */
  function turn({ signal, timeoutMs }: PoolOptions): Promise<void> {
    if (waiting.size >= maxWaiting)
      throw new GatewayError('limit-exceeded', 'Too many calls wait here', { sent: false })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = () => wake(new GatewayError('call-cancelled', 'The caller cancelled', { sent: false }))
    const cancel = parts.clock.after(timeoutMs, () =>
      wake(new GatewayError('call-timeout', `No link was free within ${timeoutMs} ms`, { sent: false })),
    )
    function wake(error?: GatewayError): void {
      waiting.delete(wake)
      cancel()
      signal.removeEventListener('abort', onAbort)
      if (error) return reject(error)
      resolve()
    }
    waiting.add(wake)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    return promise
  }

  function drop(link: Link): void {
    if (extras.has(link)) retire(link)
    next()
  }

  function retire(link: Link): void {
    idle.get(link)?.()
    idle.delete(link)
    extras.delete(link)
    const ending = link.close().finally(() => endings.delete(ending))
    endings.add(ending)
  }

  async function close(): Promise<void> {
    closing.abort()
    for (const wake of waiting)
      wake(new GatewayError('server-unavailable', 'The connection was closed', { sent: false }))
    for (const link of extras) retire(link)
    await Promise.all(endings)
  }
}
