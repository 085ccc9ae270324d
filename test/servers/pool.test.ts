import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import { closedBecause, type Link } from '../../src/servers/link.ts'
import { createLinkPool } from '../../src/servers/pool.ts'
import { createMovableClock } from '../scenarios/mcp/clock.ts'

/** A link that only knows whether it is open: what travels on it is not the pool's business. */
function createLink(): Link & { closed(): boolean } {
  let closed = false
  const nothing = () => Promise.reject(new Error('Not used here'))
  return {
    way: 'legacy',
    facts: { era: 'legacy', revision: '', capabilities: {}, serverInfo: undefined, instructions: undefined },
    request: nothing,
    follow: nothing,
    unfollow: nothing,
    logFrom: nothing,
    prove: nothing,
    lastHeardAt: () => 0,
    inFlight: () => 0,
    counters: { unmatched: 0, late: 0, invalid: 0 },
    closed: () => closed,
    async close() {
      closed = true
    },
  }
}

function createPool() {
  const clock = createMovableClock()
  const primary = createLink()
  const opened: ReturnType<typeof createLink>[] = []
  const openings: PromiseWithResolvers<Link>[] = []
  const pool = createLinkPool({
    clock,
    primary: () => primary,
    open(signal) {
      const opening = Promise.withResolvers<Link>()
      signal.addEventListener('abort', () => opening.reject(new Error('Closed')))
      openings.push(opening)
      return opening.promise
    },
  })
  /** A call that holds its link until it is told to end. */
  function call(options: { alone?: boolean; timeoutMs?: number } = {}) {
    const end = Promise.withResolvers<void>()
    const controller = new AbortController()
    const held: Link[] = []
    const run = async (link: Link) => {
      held.push(link)
      await end.promise
    }
    const done = pool.use(run, { signal: controller.signal, timeoutMs: 30_000, alone: true, ...options })
    done.catch(() => {})
    return { held, done, cancel: () => controller.abort(), end: () => end.resolve() }
  }
  return {
    pool,
    clock,
    primary,
    opened,
    openings,
    call,
    /** The next link that was asked for is there. */
    async open() {
      const link = createLink()
      opened.push(link)
      openings[opened.length - 1]?.resolve(link)
      await settled()
      return link
    },
    refuse: (at: number) => openings[at]?.reject(new GatewayError('connect-failed', 'no')),
  }
}

const settled = () => new Promise(setImmediate)

describe('the links of a server that asks', () => {
  it('are shared by calls as long as nobody needs one alone', async () => {
    const { call, primary, openings } = createPool()
    const calls = [call({ alone: false }), call({ alone: false })]
    await settled()
    expect(calls.flatMap(({ held }) => held)).toEqual([primary, primary])
    expect(openings).toEqual([])
  })

  it('have one call each, and at most sixteen are open', async () => {
    const { call, open, openings } = createPool()
    const calls = Array.from({ length: 40 }, () => call())
    await settled()
    expect(openings.length).toBe(15)
    for (let opening = 0; opening < 15; opening++) await open()
    const held = calls.flatMap((each) => each.held)
    expect(held.length).toBe(16)
    expect(new Set(held).size).toBe(16)
    for (const each of calls) each.end()
    await Promise.all(calls.map(({ done }) => done))
    expect(openings.length).toBe(15)
  })

  it('are handed on in the order in which calls came', async () => {
    const { call, open } = createPool()
    const first = Array.from({ length: 16 }, () => call())
    for (let opening = 0; opening < 15; opening++) await open()
    const [second, third] = [call(), call()]
    first[3]?.end()
    const newcomer = call()
    await settled()
    expect([second.held.length, third.held.length, newcomer.held.length]).toEqual([1, 0, 0])
    expect(second.held).toEqual(first[3]?.held)
  })

  it('are not waited for by a call that was cancelled, and the next call gets what was opened for it', async () => {
    const { call, open, openings } = createPool()
    const [first, second] = [call(), call()]
    await settled()
    second.cancel()
    await expect(second.done).rejects.toMatchObject({ code: 'call-cancelled', reach: 'unsent' })
    const link = await open()
    expect([first.held.length, second.held.length]).toEqual([1, 0])
    const third = call()
    await settled()
    expect(third.held).toEqual([link])
    expect(openings.length).toBe(1)
  })

  it('are waited for no longer than a call may take, however often others go first', async () => {
    const { call, clock } = createPool()
    const first = call()
    await settled()
    const late = call({ timeoutMs: 1000 })
    await settled()
    clock.advance(1100)
    await expect(late.done).rejects.toMatchObject({ code: 'call-timeout', reach: 'unsent' })
    expect(late.held).toEqual([])
    first.end()
  })

  it('fail one call when they cannot be opened, and the others wait on', async () => {
    const { call, refuse, primary } = createPool()
    const [first, second, third] = [call(), call(), call()]
    await settled()
    refuse(0)
    await expect(second.done).rejects.toMatchObject({ code: 'server-unavailable', reach: 'unsent' })
    first.end()
    await settled()
    expect(third.held).toEqual([primary])
  })

  it('are closed after a minute without a call, but the first', async () => {
    const { call, open, clock, primary } = createPool()
    const [first, second] = [call(), call()]
    const link = await open()
    first.end()
    second.end()
    await Promise.all([first.done, second.done])
    clock.advance(50_000)
    const third = [call(), call()]
    await settled()
    clock.advance(50_000)
    expect(link.closed()).toBe(false)
    for (const each of third) each.end()
    await settled()
    clock.advance(61_000)
    expect([link.closed(), primary.closed()]).toEqual([true, false])
  })

  it('are replaced when they break under those who wait', async () => {
    const { pool, call, open, openings } = createPool()
    const first = Array.from({ length: 16 }, () => call())
    for (let opening = 0; opening < 15; opening++) await open()
    const waiting = call()
    await settled()
    const broken = first[5]?.held[0]
    if (broken) pool.drop(broken)
    await settled()
    expect(openings.length).toBe(16)
    const link = await open()
    expect(waiting.held).toEqual([link])
  })

  it('all end with the pool: those in use, those being opened, and those that open too late', async () => {
    const { pool, call, open, opened, openings } = createPool()
    const calls = Array.from({ length: 3 }, () => call())
    await open()
    const closing = pool.close(closedBecause('the test is over'))
    const late = createLink()
    openings[1]?.resolve(late)
    await closing
    await settled()
    expect(opened.map((link) => link.closed())).toEqual([true])
    await expect(calls[2]?.done).rejects.toMatchObject({ code: 'server-unavailable', reach: 'unsent' })
  })

  it('are closed even if they open in the moment in which the pool closes', async () => {
    const clock = createMovableClock()
    const late = createLink()
    const opening = Promise.withResolvers<Link>()
    const primary = createLink()
    const pool = createLinkPool({ clock, primary: () => primary, open: () => opening.promise })
    const options = { signal: new AbortController().signal, timeoutMs: 1000, alone: true }
    const hang = () => new Promise<void>(() => {})
    pool.use(hang, options).catch(() => {})
    pool.use(hang, options).catch(() => {})
    await settled()
    opening.resolve(late)
    await pool.close(closedBecause('the test is over'))
    expect(late.closed()).toBe(true)
  })

  it('let at most 256 calls wait', async () => {
    const { call } = createPool()
    const calls = Array.from({ length: 1 + 256 }, () => call())
    await expect(call().done).rejects.toMatchObject({ code: 'limit-exceeded', reach: 'unsent' })
    expect(calls.length).toBe(257)
  })
})
