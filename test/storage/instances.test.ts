import { expect, it, vi } from 'vitest'
import { createRounds } from '../../src/lib/rounds.ts'
import { migrations } from '../../src/storage/migrations.ts'
import { lockDeadInstance } from '../../src/storage/postgres/living.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { runOn } from '../support/postgres.ts'
import { startClaimingProcess } from './child.ts'
import { callOf, emptyPlaceOn, observe, open, type Place, placeOn } from './support.ts'

const patiently = { timeout: 20_000, interval: 20 }

it('lets several gateways have one database, each with its own record', async () => {
  const place = await placeOn('PostgreSQL')
  const storages = await Promise.all(Array.from({ length: 4 }, () => open(place)))
  await Promise.all(storages.map((storage) => storage.claim(callOf('write'))))
  const entries = await observe(place).all('select instance, sequence from audit order by instance')
  expect(entries).toEqual(storages.map(({ instance }) => ({ instance, sequence: 1 })).toSorted(byInstance))
  expect((await storages[0]?.calls.list({ limit: 10 }))?.items).toHaveLength(4)
})

it('migrates once when several start at the same moment', async () => {
  const place = await emptyPlaceOn('PostgreSQL')
  await Promise.all(Array.from({ length: 5 }, () => open(place)))
  const applied = await observe(place).all('select id from migrations order by id')
  expect(applied.map(({ id }) => id)).toEqual(migrations.map(({ id }) => id))
})

it('refuses data that a newer program wrote, and changes nothing in it', async () => {
  const place = await placeOn('PostgreSQL')
  await (await open(place)).close()
  await runOn(place.databaseUrl ?? '', "insert into migrations values (9999, 'from the future', 1)")
  await expect(open(place)).rejects.toMatchObject({ code: 'storage-newer' })
  expect(await observe(place).all('select count(*) as count from instances')).toEqual([{ count: 1 }])
})

it.each([
  'postgres://someone:a-password-nobody-sees@127.0.0.1:1/nothing',
  'postgres://postgres:a-password-nobody-sees@DATABASE',
  'mysql://someone:a-password-nobody-sees@127.0.0.1/nothing',
  'a-password-nobody-sees',
])('refuses to start without its database, and tells nobody the password (%#)', async (url) => {
  const place = await placeOn('PostgreSQL')
  const databaseUrl = url.replace('DATABASE', new URL(place.databaseUrl ?? '').host)
  const error = await open({ ...place, databaseUrl }).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: expect.stringMatching(/^(storage-unavailable|request-invalid)$/) })
  const everything = error instanceof Error ? `${error.stack}${JSON.stringify(error)}${error.cause}` : ''
  expect(everything).not.toContain('a-password-nobody-sees')
})

it('leaves the calls of living instances alone, and closes those of one that was killed', async () => {
  const place = await placeOn('PostgreSQL')
  const other = await startClaimingProcess(place, 'claim')
  await other.reached(30)
  const storage = await open(place)
  expect(await storage.recover()).toEqual({ unknownCalls: 0 })
  expect(await storage.children.deadInstances()).toEqual([])
  await other.kill()
  await vi.waitFor(async () => expect(await storage.children.deadInstances()).toEqual([other.instance]), patiently)
  const observer = observe(place)
  const running = await observer.all("select id from calls where state = 'running'")
  expect(running.length).toBeGreaterThan(0)
  expect(await storage.recover()).toEqual({ unknownCalls: running.length })
  expect(await observer.all('select id from instances where ended_at is null')).toEqual([{ id: storage.instance }])
})

/** Frees the lock of an instance and makes its lease old, as after a pause of the database. */
async function lapse(place: Place, instance: string): Promise<void> {
  const url = place.databaseUrl ?? ''
  await runOn(url, 'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
    `sallyport ${instance} presence`,
  ])
  await runOn(url, 'update instances set renewed_at = renewed_at - 60000 where id = $1', [instance])
}

/** The row of an instance on another machine, whose lock is free and whose lease was over long ago. */
async function addElsewhere(place: Place, id: string): Promise<void> {
  const values = [id, Date.now() - 90_000, 7, 'another-boot', 'another-host', Date.now() - 60_000, 'pid:[1] 7']
  await runOn(
    place.databaseUrl ?? '',
    `insert into instances (id, started_at, pid, boot_id, host, renewed_at, process) values ($1, $2, $3, $4, $5, $6, $7)`,
    values,
  )
}

/** Those that were declared dead; an instance that ended itself has no process any more. */
async function declaredDead({ databaseUrl = '' }: Place): Promise<unknown[]> {
  const rows = await runOn(databaseUrl, 'select id from instances where ended_at is not null and process is not null')
  return rows.map(({ id }) => id)
}

it('lets a gateway on this host live while its process does, whatever its lock and its lease say', async () => {
  const place = await placeOn('PostgreSQL')
  const proxy = await startCuttingProxy(Number(new URL(place.databaseUrl ?? '').port))
  const other = await startClaimingProcess(proxy.before(place), 'claim')
  await other.reached(10)
  const storage = await open(place)
  proxy.pause()
  await lapse(place, other.instance)
  // On another machine nothing but lock and lease counts: when that one is dead, this one would be too.
  await addElsewhere(place, 'instance-elsewhere')
  await vi.waitFor(async () => {
    await storage.recover()
    expect(await declaredDead(place)).toEqual(['instance-elsewhere'])
  }, patiently)
  expect(await storage.children.deadInstances()).toEqual([])
  await other.kill()
  expect(await storage.children.deadInstances()).toEqual([other.instance])
})

it('declares nobody dead before the database has answered it for a while, after it was away itself', async () => {
  const place = await placeOn('PostgreSQL')
  const proxy = await startCuttingProxy(Number(new URL(place.databaseUrl ?? '').port))
  const storage = await open(proxy.before(place))
  await addElsewhere(place, 'instance-1')
  expect(await storage.recover()).toEqual({ unknownCalls: 0 })
  expect(await declaredDead(place)).toEqual([])
  await vi.waitFor(async () => {
    await storage.recover()
    expect(await declaredDead(place)).toEqual(['instance-1'])
  }, patiently)
  proxy.pause()
  await vi.waitFor(() => expect(storage.healthy()).toBe(false), patiently)
  await addElsewhere(place, 'instance-2')
  proxy.resume()
  await vi.waitFor(() => expect(storage.healthy()).toBe(true), patiently)
  await storage.recover()
  expect(await declaredDead(place)).toEqual(['instance-1'])
})

it('closes nothing of an instance that came back after it was looked at', async () => {
  const place = await placeOn('PostgreSQL')
  const [here, there] = [await open(place), await open(place)]
  const refused = await here.remove([lockDeadInstance(there.instance), { sql: 'delete from memory', parameters: [] }])
  expect(refused).toBe(0)
  await there.close()
  // The server notices the end of a connection a moment after the client has closed it.
  await vi.waitFor(async () => expect(await here.remove([lockDeadInstance(there.instance)])).toBe(1), patiently)
})

/** What an instance keeps in memory, read again when somebody says that it changed; `slowly` is a machine under load. */
async function keepInMemory(storage: Storage, slowly = async () => {}) {
  const kept = { tokens: await storage.tokens.all(), readings: 0 }
  storage.changes.on('tokens', async () => {
    await slowly()
    kept.tokens = await storage.tokens.all()
    kept.readings++
  })
  return {
    isRevoked: (id: string) => kept.tokens.some((token) => token.id === id && token.revokedAt !== undefined),
    kept,
  }
}

const holder = { kind: 'agent' as const, name: 'reviewer', holderId: 'agent-reviewer' }
const token = { id: 'token-1', ...holder, prefix: 'sp', hash: '00', createdAt: 1 }
const change = { principal: 'user:a', subject: 'token:token-1', body: {} }
const slowly = () => new Promise<void>((resolve) => setTimeout(resolve, 300))

async function startPair() {
  const place = await placeOn('PostgreSQL')
  const [here, there] = [await open(place), await open(place)]
  await here.tokens.add(token, change)
  return { place, here, there, memory: await keepInMemory(there, slowly) }
}

it('has every living instance read again before a change counts as announced', async () => {
  const { here, memory } = await startPair()
  await here.tokens.revoke(token.id, 5, change)
  await here.changes.announce('tokens')
  expect(memory.isRevoked(token.id)).toBe(true)
})

it('would notice an announcement that does not wait for the others', async () => {
  const { here, memory } = await startPair()
  await here.tokens.revoke(token.id, 5, change)
  void here.changes.announce('tokens').catch(() => {})
  expect(memory.isRevoked(token.id)).toBe(false)
})

it('reads everything again when notices may have been missed, and does not serve before it has', async () => {
  const { place, here, there, memory } = await startPair()
  await here.tokens.revoke(token.id, 5, change)
  await runOn(
    place.databaseUrl ?? '',
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
    [`sallyport ${there.instance} presence`],
  )
  await vi.waitFor(() => expect(memory.isRevoked(token.id)).toBe(true), patiently)
  await vi.waitFor(() => expect(there.healthy()).toBe(true), patiently)
  await there.claim(callOf('write'))
})

it('waits no longer for an instance than its lease lasts, and that one refuses calls by then', async () => {
  const place = await placeOn('PostgreSQL')
  const here = await open(place)
  const other = await startClaimingProcess(place, 'steady')
  // The lease may be renewed before the next call comes: then there is nothing to refuse, and it is tried again.
  for (let tries = 0; tries < 10 && other.refused.length === 0; tries++) {
    await other.reached(other.claimed.length + 5) // the lease comes back by itself
    other.pause()
    await here.changes.announce('tokens')
    other.resume()
    await other.reached(other.claimed.length + 5)
  }
  expect(other.refused.length).toBeGreaterThan(0)
})

it('keeps its lease while others change something without a pause', async () => {
  const { here, there } = await startPair()
  let going = true
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    await new Promise((resolve) => setTimeout(resolve, lane * 60)) // there is always one that has not been read yet
    while (going) await here.changes.announce('tokens')
  })
  const refused: unknown[] = []
  for (let count = 0; count < 200; count++) {
    await there.claim(callOf('write')).catch((error: unknown) => refused.push(error))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  going = false
  await Promise.all(lanes)
  expect(refused).toEqual([])
})

it('serves no longer than its lease lasts while it cannot read what another one changed', async () => {
  const { here, there } = await startPair()
  there.changes.on('tokens', () => new Promise(() => {}))
  await here.changes.announce('tokens')
  await expect(there.claim(callOf('write'))).rejects.toMatchObject({ code: 'storage-unavailable' })
})

it('shares one reading between the changes that come during another, and none begins before its change', async () => {
  let [changed, seen, readings] = [0, 0, 0]
  const announce = createRounds(async () => {
    readings++
    const read = changed
    await new Promise((resolve) => setTimeout(resolve, 5))
    seen = read
  })
  const change = async () => {
    const mine = ++changed
    await announce()
    return seen >= mine
  }
  const first = change()
  const others = await Promise.all([first, ...Array.from({ length: 50 }, change)])
  expect(others).toEqual(others.map(() => true))
  expect(readings).toBe(2)
})

it('would miss a change if it shared the reading under way', async () => {
  let [changed, seen] = [0, 0]
  let current: Promise<void> | undefined
  const read = async () => {
    const now = changed
    await new Promise((resolve) => setTimeout(resolve, 5))
    seen = now
  }
  const change = async () => {
    const mine = ++changed
    current ??= read()
    await current
    return seen >= mine
  }
  expect(await Promise.all([change(), change()])).toEqual([true, false])
})

it('survives nonsense on the channel of notices', async () => {
  const { place, here, memory } = await startPair()
  await runOn(place.databaseUrl ?? '', "select pg_notify('sallyport', 'nonsense'), pg_notify('sallyport', '{}')")
  await here.changes.announce('tokens')
  expect(memory.kept.readings).toBe(1)
})

function byInstance(left: { instance: string }, right: { instance: string }): number {
  return left.instance < right.instance ? -1 : 1
}
