import { expect, it } from 'vitest'
import { changeFile, numbersUpTo } from '../storage/support.ts'
import { poll } from '../support/gateway.ts'
import { expectIntentFirst, failing, findUnrecorded, watchSending } from './intent.ts'
import { buildRoad, howItWent, inTurns } from './support.ts'

it('sends nothing of a writing call before its intent entry is on disk, although the store fails at random', () =>
  expectIntentFirst(1000))

it('would be caught by the same look if it sent before it claimed', async () => {
  const seen: number[] = []
  const road = await buildRoad({
    around(parts, reader) {
      const watched = watchSending((intents) => seen.push(intents))(parts, reader)
      // Reading calls do not wait for their entry: so every call is claimed like one.
      const claim: typeof parts.storage.claim = (call) => parts.storage.claim({ ...call, risk: 'read' })
      return { ...watched, storage: { ...parts.storage, claim } }
    },
  })
  changeFile(road.folder, failing)
  await inTurns(numbersUpTo(200), 25, (n) => howItWent(road.call('write_thing', { n })))
  expect(seen).toContain(0)
  expect((await findUnrecorded(road)).length).toBeGreaterThan(0)
})

it('makes no call that it cannot record, and goes on by itself when it can again', async () => {
  const road = await buildRoad({ maxPages: 400 })
  const filler = { text: 'x'.repeat(50_000) }
  let recorded = 0
  while ((await howItWent(road.call('write_thing', filler))) === 'ok') recorded++
  // At once: the store looks by itself whether it can write again, and something small may fit.
  expect(road.storage.healthy()).toBe(false)
  const tools = ['write_thing', 'destroy_thing', 'read_thing', 'no_such_tool']
  const ends = tools.map((tool) => howItWent(road.call(tool)))
  expect(await Promise.all(ends)).toEqual(ends.map(() => 'storage-unavailable'))
  expect(await road.received()).toHaveLength(recorded)

  changeFile(road.folder, 'delete from audit', 'delete from calls')
  await poll(() => road.storage.healthy() || undefined)
  expect(await howItWent(road.call('write_thing', { n: 1 }))).toBe('ok')
  expect(await howItWent(road.call('read_thing', { n: 2 }))).toBe('ok')
})

it('makes no call once the store is closed', async () => {
  const road = await buildRoad()
  await road.storage.close()
  const ends = ['write_thing', 'read_thing', 'no_such_tool'].map((tool) => howItWent(road.call(tool)))
  expect(await Promise.all(ends)).toEqual(ends.map(() => 'storage-unavailable'))
  expect(await road.received()).toEqual([])
})

it('lets nothing be lost of calls that were still being claimed when it closed', async () => {
  const road = await buildRoad()
  const going = numbersUpTo(50).map((n) => howItWent(road.call('write_thing', { n })))
  await road.calls.close(0)
  await road.storage.close()
  const ends = await Promise.all(going)
  const rows = road.reader.all('select id, state from calls')
  const outcomes = road.reader.all("select call from audit where kind = 'outcome'")
  expect(rows).toHaveLength(ends.length)
  expect(rows.map(({ state }) => state)).not.toContain('running')
  expect(outcomes).toHaveLength(rows.length)
  expect(await howItWent(road.call('write_thing'))).toBe('shutting-down')
})

it('is closed only when the last call that was being claimed has its end', async () => {
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const road = await buildRoad({
    around(parts) {
      const claim: typeof parts.storage.claim = async (call) => {
        const permit = await parts.storage.claim(call)
        await gate.promise
        return permit
      }
      const finish: typeof parts.storage.finish = (call, end) => {
        order.push(end.state)
        parts.storage.finish(call, end)
      }
      return { ...parts, storage: { ...parts.storage, claim, finish } }
    },
  })
  const going = howItWent(road.call('write_thing'))
  await poll(() => road.reader.all("select id from calls where state = 'running'")[0])
  const closed = road.calls.close(0).then(() => order.push('closed'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  gate.resolve()
  await closed
  expect(order).toEqual(['cancelled', 'closed'])
  expect(await going).toBe('shutting-down')
  expect(await road.received()).toEqual([])
})

it('denies every call while the rules cannot be asked, and sends nothing', async () => {
  const road = await buildRoad({
    around(parts) {
      const effective: typeof parts.config.effective = () => {
        throw new Error('The rules are gone')
      }
      return { ...parts, config: { ...parts.config, effective } }
    },
  })
  const ends = ['read_thing', 'write_thing', 'destroy_thing'].map((tool) => howItWent(road.call(tool)))
  expect(await Promise.all(ends)).toEqual(['call-denied', 'call-denied', 'call-denied'])
  expect(await road.received()).toEqual([])
})
