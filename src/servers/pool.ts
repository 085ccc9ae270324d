import { GatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { onAbort, toCancellation } from '../lib/signals.ts'
import type { Link } from './link.ts'

/** The links of one server. Calls share the first link, unless the server is conversational. */
export type LinkPool = {
  use<Result>(run: (link: Link) => Promise<Result>, options: PoolOptions): Promise<Result>
  /** Removes a link that has failed. */
  drop(link: Link): void
  close(reason: GatewayError): Promise<void>
}

type PoolOptions = {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Use a link that no other call uses at the same time. */
  readonly alone: boolean
}

export type PoolParts = {
  readonly clock: Clock
  /** The first link of the connection; throws if the server is not connected. */
  primary(): Link
  open(signal: AbortSignal): Promise<Link>
}

const maxLinks = 16
const maxWaiting = 256
const idleMs = 60_000

type Waiter = { take(link: Link): void; fail(error: GatewayError): void }

export function createLinkPool(parts: PoolParts): LinkPool {
  const extras = new Set<Link>()
  const users = new Map<Link, number>()
  const closing = new AbortController()
  const idle = new Map<Link, () => void>()
  const waiting = new Set<Waiter>()
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

  function takeFree(options: PoolOptions): Promise<Link> {
    const free = [parts.primary(), ...extras].find((link) => !users.has(link))
    if (free) return Promise.resolve(hold(free))
    const turn = waitForTurn(options)
    openMore()
    return turn
  }

  function hold(link: Link): Link {
    users.set(link, (users.get(link) ?? 0) + 1)
    idle.get(link)?.()
    idle.delete(link)
    return link
  }

  function giveBack(link: Link): void {
    const left = (users.get(link) ?? 1) - 1
    if (left > 0) return void users.set(link, left)
    users.delete(link)
    pass(link)
  }

  /** Gives a free link directly to the first waiter, so that a later call cannot take it. */
  function pass(link: Link): void {
    const [next] = waiting
    if (!isOpen(link)) return openMore()
    if (next) return next.take(hold(link))
    if (extras.has(link))
      idle.set(
        link,
        parts.clock.after(idleMs, () => retire(link)),
      )
  }

  function isOpen(link: Link): boolean {
    if (extras.has(link)) return true
    try {
      return link === parts.primary()
    } catch {
      return false
    }
  }

  /** Opens one link per waiter, up to the limit. The first waiter gets the first link. */
  function openMore(): void {
    while (waiting.size > opening && extras.size + opening + 1 < maxLinks && !closing.signal.aborted) {
      opening++
      const opened = open().finally(() => endings.delete(opened))
      endings.add(opened)
    }
  }

  async function open(): Promise<void> {
    try {
      const link = await parts.open(closing.signal)
      opening--
      if (closing.signal.aborted) return await link.close()
      extras.add(link)
      pass(link)
    } catch (error) {
      opening--
      const message = 'No further connection to the server could be opened'
      const [first] = waiting
      first?.fail(new GatewayError('server-unavailable', message, {}, { cause: error, reach: 'unsent' }))
      openMore()
    }
  }

  function waitForTurn({ signal, timeoutMs }: PoolOptions): Promise<Link> {
    const { promise, resolve, reject } = Promise.withResolvers<Link>()
    if (waiting.size >= maxWaiting) {
      reject(
        new GatewayError(
          'limit-exceeded',
          `More than ${maxWaiting} calls wait for a connection to the server`,
          {},
          { reach: 'unsent' },
        ),
      )
      return promise
    }
    const leave = () => {
      waiting.delete(waiter)
      cancel()
      unlink()
    }
    const waiter: Waiter = {
      take(link) {
        leave()
        resolve(link)
      },
      fail(error) {
        leave()
        reject(error)
      },
    }
    let unlink = () => {}
    const cancel = parts.clock.after(timeoutMs, () =>
      waiter.fail(
        new GatewayError('call-timeout', `No connection was free within ${timeoutMs} ms`, {}, { reach: 'unsent' }),
      ),
    )
    waiting.add(waiter)
    unlink = onAbort(signal, () => waiter.fail(toCancellation(signal, 'unsent')))
    return promise
  }

  function drop(link: Link): void {
    if (extras.has(link)) retire(link)
    openMore()
  }

  function retire(link: Link, reason?: GatewayError): void {
    idle.get(link)?.()
    idle.delete(link)
    extras.delete(link)
    const ending = link.close(reason).finally(() => endings.delete(ending))
    endings.add(ending)
  }

  async function close(reason: GatewayError): Promise<void> {
    closing.abort(reason)
    for (const waiter of waiting) waiter.fail(reason.withReach('unsent'))
    for (const link of extras) retire(link, reason)
    await Promise.all(endings)
  }
}
