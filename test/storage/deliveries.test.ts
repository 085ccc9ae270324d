import { describe, expect, it } from 'vitest'
import type { Storage } from '../../src/storage/storage.ts'
import type { NewDelivery } from '../../src/storage/tables/deliveries.ts'
import { databases, ids, jumpingClock, open, type Place, placeOn } from './support.ts'

const change = { principal: 'user:root', subject: 'webhook:chat', body: {} }

function newDelivery(more: Partial<NewDelivery> = {}): NewDelivery {
  const body = '{"type":"test"}'
  return { id: ids.next('msg'), endpoint: 'chat', type: 'call-ended', body, createdAt: Date.now() - 10, ...more }
}

function many(count: number, more: Partial<NewDelivery> = {}): NewDelivery[] {
  return Array.from({ length: count }, (_, index) => newDelivery({ createdAt: Date.now() - 1000 + index, ...more }))
}

const idsOf = (deliveries: readonly { id: string }[]) => deliveries.map(({ id }) => id)

describe.each(databases)('on %s', (kind) => {
  it('hands out what is due, longest due first, and nothing that is taken or has ended', async () => {
    const { deliveries } = await open(await placeOn(kind))
    const rows = many(4)
    const [first, second, third, fourth] = rows.map(({ id }) => id) as [string, string, string, string]
    await deliveries.add(rows.toReversed())
    await deliveries.add([newDelivery({ endpoint: 'other' })])
    expect(await deliveries.due('chat', 10)).toEqual(idsOf(rows))
    expect(await deliveries.take(first)).toMatchObject({ id: first, attempts: 0, body: '{"type":"test"}' })
    expect(await deliveries.take(first)).toBeUndefined()
    await deliveries.end(first, { at: Date.now(), status: 200, next: 'delivered' })
    await deliveries.take(second)
    await deliveries.end(second, { at: Date.now(), status: 500, error: 'answered 500', next: Date.now() + 60_000 })
    await deliveries.take(third)
    await deliveries.putBack(third)
    expect(await deliveries.due('chat', 10)).toEqual([third, fourth])
    expect(await deliveries.due('chat', 1)).toEqual([third])
    expect(await deliveries.take(second)).toBeUndefined()
    expect(await deliveries.find(second)).toMatchObject({ state: 'waiting', attempts: 1, error: 'answered 500' })
    expect(await deliveries.find(third)).toMatchObject({ state: 'waiting', attempts: 0 })
  })

  it('keeps one of those that have the same id, as it was first', async () => {
    const { deliveries } = await open(await placeOn(kind))
    const one = newDelivery()
    await deliveries.add([one])
    await deliveries.take(one.id)
    await deliveries.end(one.id, { at: Date.now(), status: 200, next: 'delivered' })
    await deliveries.add([{ ...one, body: '{}' }, newDelivery()])
    const { items } = await deliveries.list({ limit: 10 })
    expect(items.map(({ state }) => state).toSorted()).toEqual(['delivered', 'waiting'])
  })

  it('gives what a dead gateway had under way to the next', async () => {
    const place = await placeOn(kind)
    const first = await open(place)
    const one = newDelivery()
    await first.deliveries.add([one])
    await first.deliveries.take(one.id)
    await first.close()
    const second = await open(place)
    expect(await second.deliveries.due('chat', 10)).toEqual([])
    await second.recover()
    expect(await second.deliveries.due('chat', 10)).toEqual([one.id])
    expect(await second.deliveries.take(one.id)).toMatchObject({ id: one.id, attempts: 0 })
  })

  it('sends again what failed, with all attempts before it, and not what was delivered or is under way', async () => {
    const { deliveries, audit } = await open(await placeOn(kind))
    const [failed, delivered, taken] = many(3) as [NewDelivery, NewDelivery, NewDelivery]
    await deliveries.add([failed, delivered, taken])
    for (const { id } of [failed, delivered, taken]) await deliveries.take(id)
    await deliveries.end(failed.id, { at: Date.now(), error: 'no', next: 'failed' })
    await deliveries.end(delivered.id, { at: Date.now(), status: 200, next: 'delivered' })
    expect(await deliveries.due('chat', 10)).toEqual([])
    expect(await deliveries.again(failed.id, change)).toBe(true)
    expect(await deliveries.again(delivered.id, change)).toBe(false)
    expect(await deliveries.again(taken.id, change)).toBe(false)
    expect(await deliveries.due('chat', 10)).toEqual([failed.id])
    expect(await deliveries.find(failed.id)).toMatchObject({ state: 'waiting', attempts: 0 })
    expect((await audit.list({ limit: 10, subject: 'webhook:chat' })).items).toHaveLength(1)
  })

  it('lists by state and endpoint, page by page, newest first', async () => {
    const { deliveries } = await open(await placeOn(kind))
    const rows = [...many(5), ...many(2, { endpoint: 'other' })]
    await deliveries.add(rows)
    const first = await deliveries.list({ limit: 3, endpoint: 'chat' })
    const second = await deliveries.list({ limit: 3, endpoint: 'chat', cursor: first.next ?? '' })
    expect([...idsOf(first.items), ...idsOf(second.items)]).toEqual(idsOf(rows.slice(0, 5)).toReversed())
    expect(second.next).toBeUndefined()
    expect((await deliveries.list({ limit: 10, state: 'failed' })).items).toEqual([])
    expect((await deliveries.list({ limit: 10, state: 'waiting' })).items).toHaveLength(7)
    await expect(deliveries.list({ limit: 3, cursor: 'x' })).rejects.toMatchObject({ code: 'request-invalid' })
  })

  it('forgets what is old or too much, and of what waits drops the oldest that nobody has under way', async () => {
    const clock = jumpingClock()
    const storage = await open(await placeOn(kind), { clock })
    const { deliveries } = storage
    const bounds = {
      waiting: 4,
      delivered: { count: 2, milliseconds: 60_000 },
      failed: { count: 100, milliseconds: 120_000 },
    }
    const rows = many(12)
    await deliveries.add(rows)
    for (const { id } of rows.slice(0, 6)) await deliveries.take(id)
    for (const { id } of rows.slice(0, 3)) await deliveries.end(id, { at: clock.now(), next: 'delivered' })
    for (const { id } of rows.slice(3, 5)) await deliveries.end(id, { at: clock.now(), error: 'no', next: 'failed' })
    expect(await deliveries.sweep(bounds)).toEqual(new Map([['chat', 2]]))
    const left = async (state: 'waiting' | 'delivered' | 'failed') =>
      idsOf((await deliveries.list({ limit: 100, state })).items).toSorted()
    expect(await left('waiting')).toEqual(idsOf([rows[5] as NewDelivery, ...rows.slice(8)]).toSorted())
    expect(await left('delivered')).toEqual(idsOf(rows.slice(1, 3)).toSorted())
    await clock.skip(storage, 61_000)
    await deliveries.sweep(bounds)
    expect(await left('delivered')).toEqual([])
    expect(await left('failed')).toHaveLength(2)
    await clock.skip(storage, 61_000)
    await deliveries.sweep(bounds)
    expect(await left('failed')).toEqual([])
  })

  it('gives each delivery to one of those who want it at the same moment', async () => {
    const place = await placeOn(kind)
    const gateways = await together(place, kind === 'SQLite' ? 1 : 3)
    const rows = many(40)
    await gateways[0]?.deliveries.add(rows)
    const takers = gateways.flatMap((gateway) => [gateway, gateway])
    const seen = await Promise.all(takers.map(({ deliveries }) => deliveries.due('chat', 100)))
    const taken = await Promise.all(
      takers.map(({ deliveries }, index) => Promise.all((seen[index] ?? []).map((id) => deliveries.take(id)))),
    )
    expect(idsOf(taken.flat().filter((each) => each !== undefined)).toSorted()).toEqual(idsOf(rows).toSorted())
    // Whoever sent what is due without taking it would send each so many times.
    expect(seen.flat()).toHaveLength(rows.length * takers.length)
  })
})

async function together(place: Place, count: number): Promise<Storage[]> {
  const opened: Storage[] = []
  for (let each = 0; each < count; each++) opened.push(await open(place))
  return opened
}
