import { describe, expect, it } from 'vitest'
import type { CallOutcome, CallsParts } from '../../src/calls/calls.ts'
import { createOnce } from '../../src/calls/once.ts'
import { GatewayError } from '../../src/contract/errors.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { callOf } from '../storage/support.ts'
import { buildRoad, type Road } from './support.ts'

const key = 'order 66'

function send({ calls }: Road, signal = new AbortController().signal): Promise<CallOutcome> {
  return calls.advance(
    {
      principal: { kind: 'agent', name: 'tester' },
      surface: 'library',
      selector: { kind: 'all' },
      name: 'files_write_thing',
      arguments: { n: 1 },
      key,
    },
    { signal },
  )
}

async function sendMany(road: Road): Promise<number> {
  await Promise.allSettled(Array.from({ length: 20 }, () => send(road)))
  return (await road.received()).length
}

/** Looks whether the key is free, and takes it afterwards: the call is claimed by itself. */
function lookThenInsert(parts: CallsParts): CallsParts {
  const claim: Storage['claim'] = async ({ once: _key, ...call }) => parts.storage.claim(call)
  return { ...parts, storage: { ...parts.storage, claim } }
}

describe('one key', () => {
  it('lets one of many calls run, because it is taken in the same commit as the intent', async () => {
    expect(await sendMany(await buildRoad())).toBe(1)
  })

  it('would let several run if it were looked up first and taken afterwards', async () => {
    expect(await sendMany(await buildRoad({ around: lookThenInsert }))).toBeGreaterThan(1)
  })

  it('leaves one call in the record, however many asked', async () => {
    const road = await buildRoad()
    await sendMany(road)
    await road.storage.flush()
    expect(road.reader.all('select state from calls')).toEqual([{ state: 'ok' }])
    expect(road.reader.all('select kind from audit where call is not null order by sequence')).toEqual([
      { kind: 'intent' },
      { kind: 'outcome' },
    ])
  })

  it('is free again after a call that certainly did nothing, and not after one that may have', async () => {
    const failures = [
      { reach: 'unsent', free: true },
      { reach: 'sent', free: false },
    ] as const
    for (const { reach, free } of failures) {
      let broken = true
      const road = await buildRoad({
        around(parts) {
          const send: CallsParts['servers']['send'] = async (permit, caller, events) => {
            if (!broken) return parts.servers.send(permit, caller, events)
            broken = false
            throw new GatewayError('server-unavailable', 'The link is down', {}, { reach })
          }
          return { ...parts, servers: { ...parts.servers, send } }
        },
      })
      expect(await send(road)).toMatchObject({ kind: 'refused', call: { state: free ? 'failed' : 'unknown' } })
      const second = await send(road)
      if (free) expect(second).toMatchObject({ kind: 'answered', call: { state: 'ok' } })
      else
        expect(second).toMatchObject({ kind: 'refused', error: { code: 'call-unknown', details: { repeated: true } } })
      expect(await road.received()).toHaveLength(free ? 1 : 0)
    }
  })
})

describe('whoever waits for the first call with a key', () => {
  const running = { state: 'running', hash: 'h', call: 'call_1' } as const
  const keys = { find: async () => running, findOf: async () => running }
  const call = callOf('write', { once: { key, hash: 'h' } })

  it('is told when to come again if it takes long', async () => {
    let now = 0
    const hurried: Clock = {
      ...systemClock,
      monotonic: () => now,
      after(milliseconds, task) {
        now += milliseconds
        setImmediate(task)
        return () => {}
      },
    }
    const earlier = await createOnce({ keys, clock: hurried }).findEarlier(call, new AbortController().signal)
    expect(earlier).toMatchObject({ kind: 'refusal', error: { code: 'idempotency-busy', details: { retryAfter: 5 } } })
  })

  it('can stop waiting', async () => {
    const controller = new AbortController()
    const waiting = createOnce({ keys, clock: systemClock }).findEarlier(call, controller.signal)
    controller.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'call-cancelled' })
  })
})
