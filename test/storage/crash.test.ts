import { expect, it } from 'vitest'
import { startClaimingProcess } from './child.ts'
import { callOf, endOf, numbersUpTo, open, readerOf, sequencesOf, temporaryFolder } from './support.ts'

it.each([1, 40, 700])('has every claim that was acknowledged before a kill -9 (after %i of them)', async (count) => {
  const folder = temporaryFolder()
  const gateway = await startClaimingProcess(folder, 'claim')
  await gateway.reached(count)
  await gateway.kill()

  const storage = await open(folder)
  const reader = readerOf(folder)
  const recorded = new Set(reader.all('select id from calls').map(({ id }) => id))
  expect(gateway.claimed.filter((id) => !recorded.has(id))).toEqual([])
  const entries = sequencesOf(reader, gateway.instance)
  expect(entries).toEqual(numbersUpTo(entries.length))
  const intents = reader.all("select distinct call from audit where kind = 'intent'")
  expect(intents).toHaveLength(recorded.size)

  const running = reader.all("select id from calls where state = 'running'").map(({ id }) => id)
  expect(running.length).toBeGreaterThan(0)
  expect(await storage.recover()).toEqual({ unknownCalls: running.length })
  const unknown = reader.all("select id from calls where state = 'unknown'").map(({ id }) => id)
  expect(unknown.toSorted()).toEqual(running.toSorted())
  const outcomes = reader.all("select call from audit where kind = 'outcome' and instance = ?", storage.instance)
  expect(outcomes.map(({ call }) => call).toSorted()).toEqual(running.toSorted())

  expect(await storage.recover()).toEqual({ unknownCalls: 0 })
  const ends = reader.all("select call from audit where kind = 'outcome' group by call having count(*) > 1")
  expect(ends).toEqual([])
  expect(reader.all('select id from instances where ended_at is null')).toEqual([{ id: storage.instance }])
})

it('tells people that nobody knows whether such a call took effect', async () => {
  const folder = temporaryFolder()
  const gateway = await startClaimingProcess(folder, 'claim')
  await gateway.reached(3)
  await gateway.kill()
  const storage = await open(folder)
  await storage.recover()
  const { items } = await storage.calls.list({ limit: 1, state: 'unknown' })
  expect(items).toMatchObject([{ instance: gateway.instance, error: { code: 'call-unknown' } }])
})

it('leaves alone the calls of the instance that recovers', async () => {
  const storage = await open(temporaryFolder())
  const permit = await storage.claim(callOf('write'))
  expect(await storage.recover()).toEqual({ unknownCalls: 0 })
  storage.finish(permit, endOf('ok'))
  expect(await storage.calls.find(permit.id)).toMatchObject({ state: 'ok' })
})
