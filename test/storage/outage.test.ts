import { expect, it, onTestFinished, vi } from 'vitest'
import type { ResolvedCall } from '../../src/contract/permit.ts'
import { openWriterLink } from '../../src/storage/postgres/writer.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { connectTo, runOn } from '../support/postgres.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import {
  callOf,
  endOf,
  numbersUpTo,
  observe,
  open,
  type Place,
  placeOn,
  sequencesIn,
  temporaryFolder,
} from './support.ts'

const patiently = { timeout: 20_000, interval: 20 }

/** Goes through a proxy that can cut it off; whoever observes does not. */
async function openThroughProxy() {
  const place = await placeOn('PostgreSQL')
  const url = new URL(place.databaseUrl ?? '')
  const proxy = await startCuttingProxy(Number(url.port))
  url.port = String(proxy.port)
  return { place, proxy, storage: await open({ ...place, databaseUrl: url.href }) }
}

it.each(['before', 'after'] as const)(
  'finds out what became of a commit whose connection was cut %s it arrived, and nobody notices',
  async (how) => {
    const { place, proxy, storage } = await openThroughProxy()
    const observer = observe(place)
    const cut = proxy.cutAt('commit', how)
    const calls = Array.from({ length: 20 }, () => callOf('write'))
    await Promise.all([...calls.map((call) => storage.claim(call)), cut])
    const rows = await observer.all("select id from calls where state = 'running' order by id")
    expect(rows.map(({ id }) => id)).toEqual(calls.map(({ id }) => id).toSorted())
    expect(await sequencesIn(observer, storage.instance)).toEqual(numbersUpTo(20))
    for (const call of calls) storage.finish(call, endOf('ok'))
    await storage.flush()
    expect(await sequencesIn(observer, storage.instance)).toEqual(numbersUpTo(40))
  },
)

it.each(['silence', 'silence-after'] as const)(
  'writes a batch once when its connection falls silent at the commit (%s)',
  { timeout: 20_000 },
  async (how) => {
    const { place, proxy, storage } = await openThroughProxy()
    const observer = observe(place)
    const silent = proxy.cutAt('commit', how)
    const calls = Array.from({ length: 20 }, () => callOf('write'))
    await Promise.all([...calls.map((call) => storage.claim(call)), silent])
    const rows = await observer.all("select id from calls where state = 'running' order by id")
    expect(rows.map(({ id }) => id)).toEqual(calls.map(({ id }) => id).toSorted())
    expect(await sequencesIn(observer, storage.instance)).toEqual(numbersUpTo(20))
  },
)

it('refuses writes, changes and readings while the database is still silent', { timeout: 30_000 }, async () => {
  const { place, proxy, storage } = await openThroughProxy()
  const call = callOf('write')
  proxy.pause()
  const change = { principal: 'user:a', subject: 'test', body: {} }
  const settled = await Promise.allSettled([storage.claim(call), storage.audit.append(change), storage.tokens.all()])
  const refused = { status: 'rejected', reason: { code: 'storage-unavailable' } }
  expect(settled).toMatchObject([refused, refused, refused])
  proxy.resume()
  await vi.waitFor(() => storage.flush(), patiently)
  const observer = observe(place)
  expect([undefined, 'failed']).toContain(await observer.state(call.id))
  const entries = await sequencesIn(observer, storage.instance)
  expect(entries).toEqual(numbersUpTo(entries.length))
})

it('refuses a write that a lock of somebody else holds up, and writes again when the lock is gone', async () => {
  const place = await placeOn('PostgreSQL')
  const storage = await open(place)
  const other = await connectTo(place.databaseUrl ?? '')
  onTestFinished(() => other.end())
  await other.query('begin')
  await other.query('lock table calls in access exclusive mode')
  const call = callOf('write')
  await expect(storage.claim(call)).rejects.toMatchObject({ code: 'storage-unavailable' })
  await other.query('commit')
  await vi.waitFor(() => storage.flush(), patiently)
  await vi.waitFor(() => storage.claim(callOf('write')), patiently)
  expect([undefined, 'failed']).toContain(await observe(place).state(call.id))
}, 40_000)

it('closes while the database is silent', { timeout: 40_000 }, async () => {
  const { proxy, storage } = await openThroughProxy()
  proxy.pause()
  await storage.close()
})

it('does the same for what is neither a call nor an entry', async () => {
  const { place, proxy, storage } = await openThroughProxy()
  for (const [index, how] of (['before', 'after'] as const).entries()) {
    const cut = proxy.cutAt('commit', how)
    await Promise.all([storage.children.add({ pid: index + 1, startTime: '1', connection: 'files' }), cut])
  }
  expect(await observe(place).all('select pid from children order by pid')).toEqual([{ pid: 1 }, { pid: 2 }])
})

it('would write twice if it took a lost answer for a lost commit', async () => {
  const place = await placeOn('PostgreSQL')
  const url = new URL(place.databaseUrl ?? '')
  const proxy = await startCuttingProxy(Number(url.port))
  url.port = String(proxy.port)
  await runOn(place.databaseUrl ?? '', 'create table written (number integer)')
  const cut = proxy.cutAt('commit', 'after')
  const write = () => runOn(url.href, 'begin; insert into written values (1); commit')
  await expect(write()).rejects.toThrow()
  await Promise.all([cut, write()])
  expect(await runOn(place.databaseUrl ?? '', 'select number from written')).toEqual([{ number: 1 }, { number: 1 }])
})

it('ends the connection that it lost before it looks, so that nothing of it becomes true afterwards', async () => {
  const place = await placeOn('PostgreSQL')
  await (await open(place)).close()
  const address = { url: place.databaseUrl ?? '', name: 'sallyport instance-1 writer' }
  const lost = await openWriterLink(address, 'instance-1', 10_000)
  await lost.client.query('begin')
  await lost.client.query("insert into batches values ('instance-1', 7)")
  const next = await openWriterLink(address, 'instance-1', 10_000)
  onTestFinished(() => next.close())
  expect(next.batch).toBe(0)
  await expect(lost.client.query('commit')).rejects.toThrow()
  expect(await observe(place).all('select number from batches where instance = ?', 'instance-1')).toEqual([])
})

/** Claims and ends calls without a pause, and knows what it was promised. */
function work(storage: Storage) {
  const permitted: ResolvedCall[] = []
  const refused: ResolvedCall[] = []
  const codes = new Set<unknown>()
  let going = true
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    while (going) {
      const call = callOf(lane % 2 === 0 ? 'write' : 'read')
      try {
        storage.finish(await storage.claim(call), endOf('ok'))
        permitted.push(call)
      } catch (error) {
        refused.push(call)
        codes.add(error instanceof Error && 'code' in error ? error.code : error)
      }
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  })
  const stop = async () => {
    going = false
    await Promise.all(lanes)
  }
  return { permitted, refused, codes, stop }
}

async function ownServer() {
  const server = await startPostgresServer()
  onTestFinished(() => server.close())
  const place: Place = { folder: temporaryFolder(), databaseUrl: server.url() }
  return { server, place }
}

it('refuses calls while the database is away, and goes on by itself with nothing lost and nothing doubled', async () => {
  const { server, place } = await ownServer()
  const storage = await open(place)
  const load = work(storage)
  await vi.waitFor(() => expect(load.permitted.length).toBeGreaterThan(100), patiently)
  await server.stop('immediate')
  await vi.waitFor(() => expect(storage.healthy()).toBe(false), patiently)
  await expect(storage.claim(callOf('write'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  await expect(storage.claim(callOf('read'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  await server.start()
  await vi.waitFor(() => expect(storage.healthy()).toBe(true), { ...patiently, timeout: 10_000 })
  const healedAt = load.permitted.length
  await vi.waitFor(() => expect(load.permitted.length).toBeGreaterThan(healedAt + 100), patiently)
  await load.stop()
  await storage.flush()
  await expectTruth(place, storage, load)
})

it('survives a database that is restarted at once, again and again', async () => {
  const { server, place } = await ownServer()
  const storage = await open(place)
  const load = work(storage)
  for (let round = 0; round < 3; round++) {
    const before = load.permitted.length
    await vi.waitFor(() => expect(load.permitted.length).toBeGreaterThan(before + 60), patiently)
    await server.stop(round % 2 === 0 ? 'immediate' : 'fast')
    await server.start()
  }
  await load.stop()
  await vi.waitFor(() => storage.flush(), patiently)
  await expectTruth(place, storage, load)
})

async function expectTruth(place: Place, storage: Storage, load: ReturnType<typeof work>): Promise<void> {
  const observer = observe(place)
  expect([...load.codes].filter((code) => code !== 'storage-unavailable')).toEqual([])
  const rows = await observer.all('select id, state from calls')
  const states = new Map(rows.map(({ id, state }) => [id, state]))
  expect(load.permitted.filter(({ id }) => states.get(id) !== 'ok')).toEqual([])
  expect(load.refused.filter(({ id }) => ![undefined, 'failed'].includes(states.get(id) as undefined))).toEqual([])
  const entries = await sequencesIn(observer, storage.instance)
  expect(entries).toEqual(numbersUpTo(entries.length))
  expect(await observer.all('select call, kind from audit group by call, kind having count(*) > 1')).toEqual([])
}
