import { describe, expect, it, vi } from 'vitest'
import type { CallEnd, ResolvedCall } from '../../src/contract/permit.ts'
import { loadAuditKeys } from '../../src/storage/audit-key.ts'
import { createPostgresDatabase, createSqliteDatabase } from '../../src/storage/dialect.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { createCallStore } from '../../src/storage/tables/calls.ts'
import type { Unit } from '../../src/storage/unit.ts'
import { kindsOf, openRecord } from '../audit/support.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { runOn } from '../support/postgres.ts'
import { callOf, changeFile, databases, endOf, type Observer, observe, open, type Place, placeOn } from './support.ts'

const patiently = { timeout: 20_000, interval: 20 }
const never = new AbortController().signal
const error = { code: 'call-unknown', message: 'The gateway ended while this call was running' }

/** Statements about calls, for a database of this kind. */
function statementsOn(kind: string, instance: string) {
  const create = kind === 'SQLite' ? createSqliteDatabase : createPostgresDatabase
  const nothing = { query: async () => [], commit: async () => ({ kind: 'done', changes: 0, rows: [] }) as const }
  return createCallStore(create(nothing), instance)
}

/** What another instance writes when it takes the owner of a call for dead. */
function closeAsUnknown(kind: string, { id, principal, tool }: ResolvedCall): Unit {
  const end = { state: 'unknown', endedAt: Date.now(), error } as const
  const body = JSON.stringify({ state: 'unknown', error })
  const entry = { at: end.endedAt, kind: 'outcome', call: id, principal, subject: tool, body } as const
  return [statementsOn(kind, '').end(id, end), { entry }]
}

async function entriesOf(observer: Observer, call: string): Promise<string[]> {
  const rows = await observer.all('select kind, body from audit where call = ? order by at, sequence', call)
  return rows.map(({ kind, body }) => `${kind} ${JSON.parse(String(body)).state ?? ''}`.trim()).sort()
}

/** Each call has ended as its agent was told, by one outcome, or by `unknown` and one late outcome. */
async function findWrong(observer: Observer, calls: readonly ResolvedCall[]): Promise<string[]> {
  const wrong: string[] = []
  for (const { id } of calls) {
    const entries = (await entriesOf(observer, id)).join(', ')
    const right = ['intent, outcome ok', 'intent, late-outcome ok, outcome unknown'].includes(entries)
    if ((await observer.state(id)) !== 'ok' || !right) wrong.push(`${await observer.state(id)}: ${entries}`)
  }
  return wrong
}

async function claimMany(storage: Storage, count: number): Promise<ResolvedCall[]> {
  return Promise.all(Array.from({ length: count }, () => storage.claim(callOf('write'))))
}

describe.each(databases)('on %s', (kind) => {
  async function openPair(): Promise<{ place: Place; owner: Storage; other: Storage; observer: Observer }> {
    const place = await placeOn(kind)
    const owner = await open(place)
    // A file has one gateway at a time: there the owner writes both.
    const other = kind === 'SQLite' ? owner : await open(place)
    return { place, owner, other, observer: observe(place) }
  }

  it('ends a call as its agent was told, whichever comes first: the outcome, or another instance that closes it', async () => {
    const { owner, other, observer } = await openPair()
    const calls = await claimMany(owner, 60)
    const closing: Promise<unknown>[] = []
    for (const [index, call] of calls.entries()) {
      const close = () => closing.push(other.remove(closeAsUnknown(kind, call)))
      const finish = () => owner.finish(call, endOf('ok'))
      const steps = index % 2 === 0 ? [close, finish] : [finish, close]
      for (const step of steps) step()
      close() // a second instance that recovers
      if (index % 7 === 0) await Promise.allSettled(closing)
    }
    await Promise.all(closing)
    await vi.waitFor(async () => expect(await findWrong(observer, calls)).toEqual([]), patiently)
  })

  it('replaces unknown once, and no other end, and only for the instance that owns the call', async () => {
    const { place, owner, other, observer } = await openPair()
    const [call, ended, foreign] = await claimMany(owner, 3)
    if (!call || !ended || !foreign) throw new Error('Not claimed')
    await other.remove(closeAsUnknown(kind, call))
    for (const state of ['ok', 'failed'] as const) owner.finish(call, endOf(state))
    owner.finish(ended, endOf('tool-error'))
    owner.finish(ended, endOf('ok'))
    await other.remove(closeAsUnknown(kind, foreign))
    const columns = 'id, started_at, pid, boot_id, host'
    await change(place, `insert into instances (${columns}) values ('somebody-else', 1, 1, 'boot', 'host')`)
    await change(place, `update calls set instance = 'somebody-else' where id = '${foreign.id}'`)
    owner.finish(foreign, endOf('ok'))
    await vi.waitFor(async () => expect(await observer.state(call.id)).toBe('ok'), patiently)
    await owner.flush()
    await owner.flush()
    expect(await entriesOf(observer, call.id)).toEqual(['intent', 'late-outcome ok', 'outcome unknown'])
    expect(await observer.state(ended.id)).toBe('tool-error')
    expect(await entriesOf(observer, ended.id)).toEqual(['intent', 'outcome tool-error'])
    expect(await observer.state(foreign.id)).toBe('unknown')
    expect(await entriesOf(observer, foreign.id)).toEqual(['intent', 'outcome unknown'])
  })

  it('gives nothing back of a grant for a late outcome, and keeps a key that others were told about', async () => {
    const { owner, other, observer } = await openPair()
    const once = { key: 'a-key', hash: 'a-hash' }
    const call = await owner.claim(callOf('write', { once }))
    await other.remove(closeAsUnknown(kind, call))
    expect(await owner.keys.find(call.principalId, 'a-key')).toMatchObject({ state: 'unknown' })
    await owner.finishOnce(call, endOf('failed', { unsent: true }), { kind: 'released' })
    await vi.waitFor(async () => expect(await observer.state(call.id)).toBe('failed'), patiently)
    expect(await owner.keys.find(call.principalId, 'a-key')).toMatchObject({ state: 'unknown' })

    const second = await owner.claim(callOf('write', { once: { key: 'another', hash: 'a-hash' } }))
    await other.remove(closeAsUnknown(kind, second))
    await owner.finishOnce(second, endOf('ok'), { kind: 'done', response: '{}' })
    await vi.waitFor(async () => expect(await observer.state(second.id)).toBe('ok'), patiently)
    expect(await owner.keys.find(call.principalId, 'another')).toMatchObject({ state: 'done', response: '{}' })
  })

  it('would notice an end that is replaced whatever it was', async () => {
    const { owner, other, observer } = await openPair()
    const calls = await claimMany(owner, 2)
    for (const call of calls) {
      await other.remove(closeAsUnknown(kind, call))
      const late = (end: CallEnd): Unit => {
        const { principal, tool: subject } = call
        const body = JSON.stringify({ state: end.state })
        const entry = { at: end.endedAt, kind: 'late-outcome', call: call.id, principal, subject, body } as const
        return [{ sql: `update calls set state = '${end.state}' where id = '${call.id}'`, parameters: [] }, { entry }]
      }
      await owner.remove(late(endOf('ok')))
      await owner.remove(late(endOf('ok')))
    }
    expect(await findWrong(observer, calls)).toHaveLength(2)
  })

  it('finds a late outcome that follows nothing in the record', async () => {
    const place = await placeOn(kind)
    const { storage, audit, close } = await openRecord(place)
    const call = await storage.claim(callOf('write'))
    await change(place, `update calls set state = 'unknown' where id = '${call.id}'`)
    storage.finish(call, endOf('ok'))
    await vi.waitFor(async () => expect(await observe(place).state(call.id)).toBe('ok'), patiently)
    expect(kindsOf(await audit.verify(never))).toEqual(['late-outcome'])
    await close()
  })
})

async function change({ folder, databaseUrl }: Place, statement: string): Promise<void> {
  if (databaseUrl !== undefined) return void (await runOn(databaseUrl, statement))
  changeFile(folder, statement)
}

it('corrects the calls that were closed while the database was away, and the record can be proven', async () => {
  const place = await placeOn('PostgreSQL')
  const proxy = await startCuttingProxy(Number(new URL(place.databaseUrl ?? '').port))
  const owner = await open(proxy.before(place), { auditKey: await keyOf(place) })
  const { storage: other, audit, close } = await openRecord(place)
  const [call, lost] = await claimMany(owner, 2)
  if (!call || !lost) throw new Error('Not claimed')
  proxy.pause()
  const elsewhere = "boot_id = 'another-boot', host = 'another-host', renewed_at = 0"
  await runOn(place.databaseUrl ?? '', `update instances set ${elsewhere} where id = $1`, [owner.instance])
  await runOn(
    place.databaseUrl ?? '',
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1',
    [`sallyport ${owner.instance} %`],
  )
  const observer = observe(place)
  await vi.waitFor(async () => {
    await other.recover()
    expect([await observer.state(call.id), await observer.state(lost.id)]).toEqual(['unknown', 'unknown'])
  }, patiently)
  owner.finish(call, endOf('ok'))
  owner.finish(lost, endOf('unknown', { error }))
  proxy.resume()
  await vi.waitFor(async () => expect(await observer.state(call.id)).toBe('ok'), patiently)
  expect(await entriesOf(observer, call.id)).toEqual(['intent', 'late-outcome ok', 'outcome unknown'])
  expect(await entriesOf(observer, lost.id)).toEqual(['intent', 'outcome unknown'])
  expect((await audit.verify(never)).findings).toEqual([])
  await close()
})

async function keyOf({ folder }: Place): Promise<Buffer> {
  return (await loadAuditKeys({ folder, environment: {} }))[0]
}
