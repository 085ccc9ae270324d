import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CallLimits, createLimits, type Place } from '../../src/calls/limits.ts'
import { type EffectiveConfig, effective, scopesOf } from '../../src/config/config.ts'
import { Config } from '../../src/contract/config.ts'
import { GatewayError } from '../../src/contract/errors.ts'
import { type Principal, toPrincipalKey } from '../../src/contract/principal.ts'
import { count, createMeter, isIdle, waitForRate } from '../../src/lib/meter.ts'
import { buildRoad, howItWent } from './support.ts'

const minute = 60_000

/** Admits or refuses calls at moments that only grow. */
type Gate = (now: number) => boolean

function bySliding(most: number): Gate {
  const meter = createMeter()
  return (now) => {
    if (waitForRate(meter, most, now) > 0) return false
    count(meter, now)
    return true
  }
}

/** Wrong on purpose: begins anew at every full minute, and lets twice as many through around it. */
function byFullMinutes(most: number): Gate {
  let current = 0
  let admitted = 0
  return (now) => {
    if (Math.floor(now / minute) !== current) admitted = 0
    current = Math.floor(now / minute)
    return admitted++ < most
  }
}

function isKept(gate: Gate, most: number, moments: readonly number[]): boolean {
  const admitted = moments.filter(gate)
  return admitted.every((start) => admitted.filter((at) => at >= start && at < start + minute).length <= most)
}

const pauses = fc.array(fc.oneof(fc.nat(20), fc.nat(5000), fc.nat(90_000)), { minLength: 1, maxLength: 60 })
const moments = fc.tuple(fc.nat(10_000_000), pauses).map(([start, waits]) => {
  let at = start
  return waits.map((wait) => {
    at += wait
    return at
  })
})

describe('calls in a minute', () => {
  it('are never more than the bound, wherever the minute begins', () => {
    fc.assert(
      fc.property(moments, fc.integer({ min: 1, max: 8 }), (at, most) => isKept(bySliding(most), most, at)),
      { numRuns: 200 },
    )
    const burst = [...Array.from({ length: 5 }, () => minute - 1), ...Array.from({ length: 5 }, () => minute)]
    expect(isKept(bySliding(5), 5, burst)).toBe(true)
    expect(isKept(byFullMinutes(5), 5, burst)).toBe(false)
  })

  it('are refused only when there really were as many within a minute and a second', () => {
    fc.assert(
      fc.property(moments, fc.integer({ min: 1, max: 8 }), (at, most) => {
        const gate = bySliding(most)
        const admitted: number[] = []
        for (const now of at) {
          if (gate(now)) admitted.push(now)
          else expect(admitted.filter((past) => past > now - minute - 1000).length).toBeGreaterThanOrEqual(most)
        }
      }),
      { numRuns: 100 },
    )
  })

  it('are taken again exactly when the refusal said so', () => {
    fc.assert(
      fc.property(moments, fc.integer({ min: 1, max: 8 }), (at, most) => {
        const meter = createMeter()
        for (const now of at) {
          const wait = waitForRate(meter, most, now)
          if (wait > 0) continue
          count(meter, now)
        }
        const now = at.at(-1) ?? 0
        const wait = waitForRate(meter, most, now)
        if (wait === 0) return
        expect(wait).toBeLessThanOrEqual(minute + 1000)
        const earlier = { ...meter, seconds: meter.seconds.slice() }
        if (wait > 1) expect(waitForRate(earlier, most, now + wait - 1)).toBeGreaterThan(0)
        expect(waitForRate(meter, most, now + wait)).toBe(0)
      }),
      { numRuns: 200 },
    )
  })

  it('are forgotten when nobody called for a long time', () => {
    const meter = createMeter()
    count(meter, 5000)
    meter.running--
    expect(isIdle(meter, 65_000)).toBe(false)
    expect(isIdle(meter, 66_000)).toBe(true)
    expect(isIdle(meter, 1e12)).toBe(true)
  })
})

/** Limits of a configuration, with a clock to move. */
function limitsOf(stated: object): { limits: CallLimits; clock: { at: number }; apply(changed: object): void } {
  let config = Config.parse(stated)
  const views = new WeakMap<Config, Map<string, EffectiveConfig>>()
  const clock = { at: 1_000_000 }
  const limits = createLimits({
    clock: { monotonic: () => clock.at },
    config: {
      current: () => config,
      effective(principal) {
        const known = views.get(config) ?? new Map<string, EffectiveConfig>()
        views.set(config, known)
        const view = known.get(principal.name) ?? effective(config, scopesOf(config, principal))
        known.set(principal.name, view)
        return view
      },
    },
  })
  return {
    limits,
    clock,
    apply(changed) {
      config = Config.parse(changed)
    },
  }
}

const server = { transport: 'stdio', command: 'x' }

type Where = { server?: string; tool?: string; connection?: string }

/** A place, or the limit that refused one. */
function enter(limits: CallLimits, name = 'a', to: Where = {}): Place | string {
  const principal: Principal = { kind: 'agent', name }
  const { server: named = 'files', tool = 'read', connection = named } = to
  const call = { principal: toPrincipalKey(principal), server: named, connection, original: tool }
  const place = limits.enter(principal, call)
  return place instanceof GatewayError ? String(place.details.limit) : place
}

describe('limits', () => {
  it('count each principal by itself, and one agent by its own where it has some', () => {
    const agents = { big: { limits: { concurrent: 3, pending: 50 } } }
    const { limits } = limitsOf({ limits: { concurrent: 1, callsPerMinute: 5 }, agents })
    expect([enter(limits, 'a'), enter(limits, 'a')]).toEqual([expect.anything(), 'concurrent'])
    expect(enter(limits, 'b')).toBeTypeOf('object')
    const many = Array.from({ length: 4 }, () => enter(limits, 'big'))
    expect(many).toEqual([expect.anything(), expect.anything(), expect.anything(), 'concurrent'])
    expect(limits.mostPending({ kind: 'agent', name: 'big' })).toBe(50)
    expect(limits.mostPending({ kind: 'user', name: 'big' })).toBe(10)
    expect(limits.mostPending({ kind: 'agent', name: 'constructor' })).toBe(10)
  })

  it('bound what all agents and sessions of one user leave unread together', () => {
    const megabyte = 1024 * 1024
    const { limits } = limitsOf({ limits: { buffered: 4 * megabyte, request: megabyte } })
    const principals = Array.from({ length: 10 }, (_, at): Principal => {
      return { kind: at % 2 === 0 ? 'agent' : 'session', name: `${at}`, owner: 'mia' }
    })
    const place = (principal: Principal): Place => {
      const to = { server: 'files', connection: 'files', original: 'read' }
      const entered = limits.enter(principal, { principal: toPrincipalKey(principal), ...to })
      if (entered instanceof GatewayError) throw entered
      return entered
    }
    const places = principals.map(place)
    const held = places.filter((each) => limits.buffer(each, 2 * megabyte))
    expect(held).toHaveLength(8)
    expect(() => place({ kind: 'user', name: 'mia' })).toThrow('of one user')
    const other = place({ kind: 'agent', name: 'other', owner: 'bob' })
    expect(limits.buffer(other, 2 * megabyte)).toBe(true)
    for (const each of places) limits.leave(each)
    expect(limits.buffer(place({ kind: 'agent', name: 'late', owner: 'mia' }), 16 * megabyte)).toBe(true)
  })

  it('of a server and of a tool are shared by everyone who calls it', () => {
    const { limits, clock } = limitsOf({
      servers: {
        files: {
          ...server,
          limits: { callsPerMinute: 3 },
          tools: { override: { write: { limits: { concurrent: 1 } } } },
        },
        other: server,
      },
    })
    expect(enter(limits, 'a', { tool: 'write' })).toBeTypeOf('object')
    expect(enter(limits, 'b', { tool: 'write' })).toBe('concurrent')
    expect(enter(limits, 'b', { tool: 'read' })).toBeTypeOf('object')
    expect(enter(limits, 'c', { tool: 'read' })).toBeTypeOf('object')
    expect(enter(limits, 'd', { tool: 'read' })).toBe('callsPerMinute')
    expect(enter(limits, 'd', { server: 'other' })).toBeTypeOf('object')
    clock.at += minute + 1000
    expect(enter(limits, 'd', { tool: 'read' })).toBeTypeOf('object')
    expect(enter(limits, 'd', { tool: 'write' })).toBe('concurrent')
  })

  it('of a server are tightened by a later scope that shares its link, and never loosened', () => {
    const { limits } = limitsOf({
      servers: { files: { ...server, limits: { concurrent: 2 } } },
      agents: {
        loose: { servers: { files: { limits: { concurrent: 100 } } } },
        tight: { servers: { files: { limits: { concurrent: 1 } } } },
      },
    })
    expect(enter(limits, 'loose')).toBeTypeOf('object')
    expect(enter(limits, 'tight')).toBe('concurrent')
    expect(enter(limits, 'loose')).toBeTypeOf('object')
    expect(enter(limits, 'loose')).toBe('concurrent')
  })

  it('take nothing from anybody for a call that one of them refuses', () => {
    const { limits } = limitsOf({
      limits: { callsPerMinute: 2 },
      servers: { files: { ...server, limits: { concurrent: 1 } } },
    })
    const place = enter(limits, 'a')
    for (let i = 0; i < 10; i++) expect(enter(limits, 'b')).toBe('concurrent')
    if (typeof place !== 'string') limits.leave(place)
    expect(enter(limits, 'b')).toBeTypeOf('object')
  })

  it('hold as soon as the configuration changes, with the calls that were made before', () => {
    const { limits, apply } = limitsOf({ limits: { callsPerMinute: 100 } })
    for (let i = 0; i < 10; i++) expect(enter(limits)).toBeTypeOf('object')
    apply({ limits: { callsPerMinute: 10 } })
    expect(enter(limits)).toBe('callsPerMinute')
    apply({ limits: { callsPerMinute: 11 } })
    expect(enter(limits)).toBeTypeOf('object')
  })

  it('say how long to wait, in words and in numbers', () => {
    const { limits, clock } = limitsOf({ limits: { callsPerMinute: 1 } })
    const principal: Principal = { kind: 'agent', name: 'a' }
    const call = { principal: toPrincipalKey(principal), server: 's', connection: 's', original: 't' }
    limits.enter(principal, call)
    clock.at += 20_500
    const refusal = limits.enter(principal, call)
    expect(refusal).toMatchObject({
      code: 'limit-exceeded',
      message: 'agent:a had 1 call within a minute, which is the limit; try again in 41 s',
      details: { limit: 'callsPerMinute', most: 1, retryAfter: 41, retryAfterMs: 40_500 },
    })
  })

  it('forget principals that are gone, and never those with a call under way', () => {
    const { limits, clock } = limitsOf({ limits: { concurrent: 1 } })
    expect(enter(limits, 'busy')).toBeTypeOf('object')
    for (let i = 0; i < 5000; i++) {
      const place = enter(limits, `guest-${i}`)
      if (typeof place !== 'string') limits.leave(place)
      clock.at += 100
    }
    expect(enter(limits, 'busy')).toBe('concurrent')
  })
})

describe('calls at the same time', () => {
  /** Lets many callers in at once and tells how many were inside together at most. */
  async function crowd(take: () => Promise<boolean>, leave: () => void): Promise<number> {
    let inside = 0
    let most = 0
    const visit = async () => {
      if (!(await take())) return
      inside++
      most = Math.max(most, inside)
      await new Promise((resolve) => setImmediate(resolve))
      inside--
      leave()
    }
    await Promise.all(Array.from({ length: 100 }, visit))
    return most
  }

  it('are never one more than the bound, which a look before the taking would let through', async () => {
    const { limits } = limitsOf({ limits: { concurrent: 7 } })
    const principal: Principal = { kind: 'agent', name: 'a' }
    const call = { principal: toPrincipalKey(principal), server: 's', connection: 's', original: 't' }
    let place: Place | undefined
    const right = await crowd(
      async () => {
        const entered = limits.enter(principal, call)
        if (entered instanceof GatewayError) return false
        place = entered
        return true
      },
      () => place && limits.leave(place),
    )
    expect(right).toBe(7)

    const meter = createMeter()
    const wrong = await crowd(
      async () => {
        if (meter.running >= 7) return false
        await Promise.resolve()
        meter.running++
        return true
      },
      () => meter.running--,
    )
    expect(wrong).toBeGreaterThan(7)
  })

  it('are refused over the bound and recorded, and their places are free again however the others ended', async () => {
    const gate = Promise.withResolvers<void>()
    let failing = false
    const road = await buildRoad({
      around(parts) {
        const claim: typeof parts.storage.claim = async (call) => {
          await gate.promise
          if (failing) throw new GatewayError('storage-unavailable', 'The disk is full')
          return parts.storage.claim(call)
        }
        const config = { ...parts.config, current: () => bounded(parts.config.current()) }
        return { ...parts, storage: { ...parts.storage, claim }, config }
      },
    })
    const all = Array.from({ length: 10 }, (_, n) => howItWent(road.call('write_thing', { n })))
    await expect.poll(() => road.reader.all("select id from calls where error_code = 'limit-exceeded'")).toHaveLength(7)
    gate.resolve()
    const ends = await Promise.all(all)
    expect(ends.filter((end) => end === 'ok')).toHaveLength(3)
    expect(ends.filter((end) => end === 'limit-exceeded')).toHaveLength(7)
    expect(await road.received()).toHaveLength(3)

    failing = true
    for (let n = 0; n < 5; n++) expect(await howItWent(road.call('write_thing', { n }))).toBe('storage-unavailable')
    failing = false
    const gone = AbortSignal.abort()
    for (let n = 0; n < 5; n++) expect(await howItWent(road.call('write_thing', { n }, gone))).toBe('call-cancelled')
    expect(await howItWent(road.call('write_thing', { n: 99 }))).toBe('ok')
  })

  const known = new WeakMap<Config, Config>()

  /** One object for each configuration, as the store has it. */
  function bounded(config: Config): Config {
    const changed = known.get(config) ?? { ...config, limits: { ...config.limits, concurrent: 3 } }
    known.set(config, changed)
    return changed
  }
})
