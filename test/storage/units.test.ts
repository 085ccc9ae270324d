import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { createPostgresDatabase, createSqliteDatabase } from '../../src/storage/dialect.ts'
import { createGroupCommit, type Delivery } from '../../src/storage/group-commit.ts'
import { openPostgresEngine } from '../../src/storage/postgres/engine.ts'
import { openSqliteEngine } from '../../src/storage/sqlite/engine.ts'
import type { NewEntry, Statement, Unit, UnitOutcome } from '../../src/storage/unit.ts'
import {
  auditKey,
  type DatabaseKind,
  databases,
  observe,
  type Place,
  placeOn,
  readerOf,
  sequencesIn,
  temporaryFolder,
} from './support.ts'

async function openEngine({ folder, databaseUrl }: Place, maxPages?: number) {
  const engine = await (databaseUrl === undefined
    ? openSqliteEngine({ folder, instance: 'instance-1', auditKey, now: 1, maxPages })
    : openPostgresEngine({ url: databaseUrl, instance: 'instance-1', auditKey, clock: systemClock }))
  onTestFinished(() => engine.close())
  return engine
}

function remember(key: string): Statement {
  return { sql: `insert into memory (key, value, updated_at) values ('${key}', 'x', 1)`, parameters: [], expect: 1 }
}

function entryOf(subject: string): { entry: NewEntry } {
  return { entry: { at: 1, kind: 'change', call: null, principal: 'user:admin', subject, body: '{}' } }
}

const databaseOn = (kind: DatabaseKind) => (kind === 'SQLite' ? createSqliteDatabase : createPostgresDatabase)

describe.each(databases)('on %s', (kind) => {
  it('takes back a refused unit whole, keeps its neighbours, and leaves no gap in the record', async () => {
    const place = await placeOn(kind)
    const engine = await openEngine(place)
    const missing = { sql: "update memory set value = 'y' where key = 'nobody'", parameters: [], expect: 1 }
    const outcomes = await engine.run([
      [remember('a'), entryOf('first')],
      [remember('b'), entryOf('lost'), missing],
      [entryOf('second')],
      [entryOf('lost'), remember('c'), remember('a')],
      [entryOf('lost'), { sql: 'this is not SQL', parameters: [] }],
      [remember('d'), entryOf('third')],
    ])
    expect(outcomes).toMatchObject([
      { kind: 'done' },
      { kind: 'refused', step: 2, by: 'expectation' },
      { kind: 'done' },
      { kind: 'refused', step: 2, by: 'error' },
      { kind: 'refused', step: 1, by: 'error' },
      { kind: 'done' },
    ])
    const observer = observe(place)
    expect(await observer.all('select key from memory order by key')).toEqual([{ key: 'a' }, { key: 'd' }])
    expect(await observer.all('select sequence, subject from audit order by sequence')).toEqual([
      { sequence: 1, subject: 'first' },
      { sequence: 2, subject: 'second' },
      { sequence: 3, subject: 'third' },
    ])
  })

  it('goes on counting where the record of an instance ended when its thread had to be started again', async () => {
    const place = await placeOn(kind)
    const first = await openEngine(place)
    await first.run([[entryOf('one')], [entryOf('two')]])
    await first.close()
    const second = await openEngine(place)
    await second.run([[entryOf('three')]])
    expect(await sequencesIn(observe(place), 'instance-1')).toEqual([1, 2, 3])
  })

  it('sends the units of one turn together, and those that come meanwhile in the next batch', async () => {
    const engine = await openEngine(await placeOn(kind))
    const sizes: number[] = []
    const group = createGroupCommit({
      run(units) {
        sizes.push(units.length)
        return engine.run(units)
      },
      limits: { units: 100, bytes: 1_000_000 },
      clock: systemClock,
    })
    const post = (unit: Unit) =>
      new Promise<UnitOutcome>((resolve, reject) => {
        const delivery: Delivery = { done: resolve, failed: reject }
        group.post(unit, delivery)
      })
    const first = Promise.all([post([remember('a')]), post([remember('b')]), post([remember('c')])])
    await new Promise(setImmediate)
    const second = Promise.all([post([remember('d')]), post([remember('e')])])
    await Promise.all([first, second])
    expect(sizes).toEqual([3, 2])
    expect(group.idle()).toBe(true)
  })

  it('lets what nobody waits for ride along with the next commit, or commits it by itself in the end', async () => {
    const engine = await openEngine(await placeOn(kind))
    const sizes: number[] = []
    const timers: (() => void)[] = []
    const group = createGroupCommit({
      run(units) {
        sizes.push(units.length)
        return engine.run(units)
      },
      limits: { units: 100, bytes: 1_000_000 },
      clock: {
        after(_, task) {
          timers.push(task)
          return () => timers.splice(timers.indexOf(task), 1)
        },
      },
    })
    const patient = (key: string) =>
      new Promise((resolve, reject) => group.postLater([remember(key)], { done: resolve, failed: reject }))
    const hurried = (key: string) =>
      new Promise((resolve, reject) => group.post([remember(key)], { done: resolve, failed: reject }))
    const first = patient('a')
    await new Promise(setImmediate)
    expect([sizes, timers.length, group.idle()]).toEqual([[], 1, false])
    await Promise.all([hurried('b'), first])
    expect([sizes, timers.length]).toEqual([[2], 0])
    const during = hurried('c')
    await new Promise(setImmediate)
    const last = patient('d')
    await during
    await new Promise(setImmediate)
    expect([sizes, timers.length]).toEqual([[2, 1], 1])
    timers[0]?.()
    await last
    expect([sizes, group.idle()]).toEqual([[2, 1, 1], true])
  })

  it.each([
    ['units', { units: 3, bytes: 1_000_000 }],
    ['bytes', { units: 1_000_000, bytes: 600 }],
  ])('is full when too many %s wait, and empty again when they are written', async (_, limits) => {
    const engine = await openEngine(await placeOn(kind))
    const group = createGroupCommit({ run: engine.run, limits, clock: systemClock })
    const posted = ['a', 'b', 'c'].map(
      (key) => new Promise((resolve, reject) => group.post([remember(key)], { done: resolve, failed: reject })),
    )
    expect(group.full()).toBe(true)
    await Promise.all(posted)
    expect(group.full()).toBe(false)
  })

  it('offers no open transactions, because they would hold up every other call', async () => {
    const engine = await openEngine(await placeOn(kind))
    const commit = async (unit: Unit) => (await engine.run([unit]))[0] ?? { kind: 'done', changes: 0, rows: [] }
    const database = databaseOn(kind)({ query: engine.query, commit })
    const transaction = database.transaction().execute((inside) => inside.selectFrom('calls').selectAll().execute())
    await expect(transaction).rejects.toThrow('one unit')
  })

  it('returns rows from statements that change and return them', async () => {
    const engine = await openEngine(await placeOn(kind))
    const commit = async (unit: Unit) => (await engine.run([unit]))[0] ?? { kind: 'done', changes: 0, rows: [] }
    const database = databaseOn(kind)({ query: engine.query, commit })
    await database.insertInto('memory').values({ key: 'a', value: 'x', updated_at: 1 }).execute()
    const changed = await database.updateTable('memory').set({ value: 'y' }).returning(['key', 'value']).execute()
    expect(changed).toEqual([{ key: 'a', value: 'y' }])
    const deleted = await database.deleteFrom('memory').executeTakeFirst()
    expect(deleted.numDeletedRows).toBe(1n)
  })
})

it('fails a batch whole when the database is full, and leaves no gap in the record', async () => {
  const folder = temporaryFolder()
  const engine = await openEngine({ folder }, 100)
  const large = remember('x'.repeat(1_000_000))
  await engine.run([[entryOf('first')]])
  const batch = engine.run([[remember('a'), entryOf('lost')], [entryOf('lost'), large], [entryOf('lost')]])
  await expect(batch).rejects.toMatchObject({
    code: 'storage-unavailable',
    message: expect.stringContaining('SQLITE_FULL'),
  })
  await engine.run([[remember('b'), entryOf('second')]])
  const reader = readerOf(folder)
  expect(reader.all('select key from memory')).toEqual([{ key: 'b' }])
  expect(reader.all('select sequence, subject from audit order by sequence')).toEqual([
    { sequence: 1, subject: 'first' },
    { sequence: 2, subject: 'second' },
  ])
})

it('has SQLite send every commit to the disk before it counts', async () => {
  const engine = await openEngine({ folder: temporaryFolder() })
  const setting = (name: string) => engine.query({ sql: `pragma ${name}`, parameters: [] })
  expect(await setting('journal_mode')).toEqual([{ journal_mode: 'wal' }])
  expect(await setting('synchronous')).toEqual([{ synchronous: 2 }])
  expect(await setting('foreign_keys')).toEqual([{ foreign_keys: 1 }])
})
