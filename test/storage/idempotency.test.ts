import { describe, expect, it } from 'vitest'
import type { ResolvedCall } from '../../src/contract/permit.ts'
import type { KeyEnd } from '../../src/storage/tables/idempotency.ts'
import { callOf, databases, endOf, jumpingClock, observe, open, placeOn } from './support.ts'

const day = 24 * 60 * 60 * 1000
const once = { key: 'order 7', hash: 'abc' }
const keyed = (more: Partial<ResolvedCall> = {}) => callOf('write', { once, ...more })

describe.each(databases)('the key of a call on %s', (kind) => {
  async function opened() {
    const clock = jumpingClock()
    const place = await placeOn(kind)
    const storage = await open(place, { clock })
    const find = (principalId = 'agent-reviewer') => storage.keys.find(principalId, once.key)
    const skip = (milliseconds: number) => clock.skip(storage, milliseconds)
    return { place, storage, find, skip, observer: observe(place) }
  }

  it('is taken by one of many, and the others leave nothing behind', async () => {
    const { storage, observer } = await opened()
    const claims = Array.from({ length: 20 }, () => storage.claim(keyed()))
    const settled = await Promise.allSettled(claims)
    const lost = settled.filter((result) => result.status === 'rejected')
    expect(lost).toHaveLength(19)
    for (const { reason } of lost) expect(reason).toMatchObject({ code: 'idempotency-busy' })
    expect(await observer.all('select state from calls')).toEqual([{ state: 'running' }])
    expect(await observer.all('select kind from audit where call is not null')).toEqual([{ kind: 'intent' }])
  })

  it('belongs to its principal, and is durable for a reading call too', async () => {
    const { storage, find, observer } = await opened()
    await storage.claim(keyed({ risk: 'read' }))
    await storage.claim(keyed({ principalId: 'agent-other' }))
    expect(await observer.all('select count(*) as count from calls')).toEqual([
      { count: expect.toSatisfy((n) => Number(n) === 2) },
    ])
    expect(await find()).toMatchObject({ state: 'running', hash: 'abc' })
    expect(await find('agent-nobody')).toBeUndefined()
  })

  it.each<[KeyEnd, object | undefined]>([
    [
      { kind: 'done', response: '{"a":"\\u0000"}' },
      { state: 'done', response: '{"a":"\\u0000"}' },
    ],
    [{ kind: 'unknown' }, { state: 'unknown' }],
    [{ kind: 'released' }, undefined],
  ])('ends with its call: %j', async (end, expected) => {
    const { storage, find, observer } = await opened()
    const call = keyed()
    await storage.claim(call)
    await storage.finishOnce(call, endOf(), end)
    expect(await observer.state(call.id)).toBe('ok')
    if (expected) expect(await find()).toMatchObject({ ...expected, call: call.id })
    else expect(await find()).toBeUndefined()
    if (expected) await expect(storage.claim(keyed())).rejects.toMatchObject({ code: 'idempotency-busy' })
    else await storage.claim(keyed())
  })

  it('is free again after a day', async () => {
    const { storage, find, skip, observer } = await opened()
    const first = keyed()
    await storage.claim(first)
    await storage.finishOnce(first, endOf(), { kind: 'done', response: '{}' })
    await skip(day - 1000)
    await expect(storage.claim(keyed())).rejects.toMatchObject({ code: 'idempotency-busy' })
    await skip(2000)
    expect(await find()).toBeUndefined()
    const second = keyed({ once: { ...once, hash: 'other' } })
    await storage.claim(second)
    expect(await find()).toMatchObject({ state: 'running', hash: 'other', call: second.id })
    await storage.finishOnce(first, endOf(), { kind: 'released' })
    expect(await find()).toMatchObject({ call: second.id })
    await skip(day + 1000)
    await storage.keys.sweep()
    expect(await observer.all('select * from idempotency')).toEqual([])
  })

  it('tells that the end of its call is unknown after the gateway was lost', async () => {
    const { storage, place, find } = await opened()
    const call = keyed()
    await storage.claim(call)
    expect(await find()).toMatchObject({ state: 'running' })
    await storage.close()
    const next = await open(place)
    await next.recover()
    expect(await next.keys.find('agent-reviewer', once.key)).toMatchObject({ state: 'unknown', call: call.id })
    await expect(next.claim(keyed())).rejects.toMatchObject({ code: 'idempotency-busy' })
  })
})
