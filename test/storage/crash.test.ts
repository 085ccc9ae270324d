import { describe, expect, it } from 'vitest'
import { startClaimingProcess } from './child.ts'
import { callOf, databases, endOf, numbersUpTo, observe, open, placeOn, sequencesIn } from './support.ts'

describe.each(databases)('on %s', (kind) => {
  it.each([1, 40, 700])('has every claim that was acknowledged before a kill -9 (after %i of them)', async (count) => {
    const place = await placeOn(kind)
    const gateway = await startClaimingProcess(place, 'claim')
    await gateway.reached(count)
    await gateway.kill()

    const storage = await open(place)
    const observer = observe(place)
    const recorded = new Set((await observer.all('select id from calls')).map(({ id }) => id))
    expect(gateway.claimed.filter((id) => !recorded.has(id))).toEqual([])
    const entries = await sequencesIn(observer, gateway.instance)
    expect(entries).toEqual(numbersUpTo(entries.length))
    const intents = await observer.all("select distinct call from audit where kind = 'intent'")
    expect(intents).toHaveLength(recorded.size)

    const running = (await observer.all("select id from calls where state = 'running'")).map(({ id }) => id)
    expect(running.length).toBeGreaterThan(0)
    expect(await storage.recover()).toEqual({ unknownCalls: running.length })
    const unknown = (await observer.all("select id from calls where state = 'unknown'")).map(({ id }) => id)
    expect(unknown.toSorted()).toEqual(running.toSorted())
    const outcomes = await observer.all(
      "select call from audit where kind = 'outcome' and instance = ?",
      storage.instance,
    )
    expect(outcomes.map(({ call }) => call).toSorted()).toEqual(running.toSorted())

    expect(await storage.recover()).toEqual({ unknownCalls: 0 })
    const ends = await observer.all("select call from audit where kind = 'outcome' group by call having count(*) > 1")
    expect(ends).toEqual([])
    expect(await observer.all('select id from instances where ended_at is null')).toEqual([{ id: storage.instance }])
  })

  it('tells people that nobody knows whether such a call took effect', async () => {
    const place = await placeOn(kind)
    const gateway = await startClaimingProcess(place, 'claim')
    await gateway.reached(3)
    await gateway.kill()
    const storage = await open(place)
    await storage.recover()
    const { items } = await storage.calls.list({ limit: 1, state: 'unknown' })
    expect(items).toMatchObject([{ instance: gateway.instance, error: { code: 'call-unknown' } }])
  })

  it('leaves alone the calls of the instance that recovers', async () => {
    const storage = await open(await placeOn(kind))
    const permit = await storage.claim(callOf('write'))
    expect(await storage.recover()).toEqual({ unknownCalls: 0 })
    storage.finish(permit, endOf('ok'))
    expect(await storage.calls.find(permit.id)).toMatchObject({ state: 'ok' })
  })
})
