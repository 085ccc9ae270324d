import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { restoreBackup, writeBackup } from '../../src/storage/backup.ts'
import { openPostgresSource, openPostgresTarget } from '../../src/storage/postgres/backup.ts'
import { openSqliteSource, openSqliteTarget } from '../../src/storage/sqlite/backup.ts'
import type { Storage } from '../../src/storage/storage.ts'
import {
  callOf,
  type DatabaseKind,
  databases,
  emptyPlaceOn,
  endOf,
  ids,
  numbersUpTo,
  observe,
  open,
  type Place,
  sequencesIn,
  temporaryFolder,
} from './support.ts'

async function backUp({ folder, databaseUrl }: Place, file: string) {
  const source = databaseUrl === undefined ? openSqliteSource(folder) : await openPostgresSource(databaseUrl)
  try {
    return await writeBackup({ source, file, clock: systemClock, ids })
  } finally {
    await source.close()
  }
}

async function putBack({ folder, databaseUrl }: Place, file: string) {
  const target =
    databaseUrl === undefined ? openSqliteTarget(folder, 1) : await openPostgresTarget(databaseUrl, Date.now())
  return restoreBackup({ target, file, clock: systemClock })
}

const newFile = () => join(temporaryFolder(), 'sallyport.backup')

/** Something in most tables, with characters that make trouble elsewhere. */
async function fill(storage: Storage): Promise<void> {
  const difficult = { tool: 'files_ändern "\\\u2028', arguments: { text: 'x'.repeat(10_000), nul: '\0', smile: '🙂' } }
  const calls = Array.from({ length: 600 }, async (_, count) => {
    const call = callOf(count % 2 === 0 ? 'read' : 'write', count % 100 === 0 ? difficult : {})
    storage.finish(await storage.claim(call), endOf(count % 3 === 0 ? 'tool-error' : 'ok'))
  })
  await Promise.all(calls)
  await storage.tokens.add(
    {
      id: 'token-1',
      kind: 'agent',
      name: 'reviewer',
      holderId: 'agent-reviewer',
      prefix: 'sp',
      hash: '00',
      createdAt: 1,
    },
    { principal: 'user:a', subject: 'token:token-1', body: {} },
  )
  storage.memory.set('protocol:files', 'new')
  await storage.flush()
}

const everything = [
  'select id, tool, arguments, state, duration_ms, started_at, ended_at, late from calls order by id',
  'select instance, sequence, at, kind, call, principal, subject, body from audit order by instance, sequence',
  'select id, kind, name, hash, revoked_at from tokens',
  "select key, value from memory where key <> 'restored' order by key",
]

const pairs = databases.flatMap((from) => databases.map((to) => ({ from, to })))

it.each(pairs)('restores on $to exactly what was saved from $from', async ({ from, to }) => {
  const [before, after] = [await emptyPlaceOn(from), await emptyPlaceOn(to)]
  const auditKey = randomBytes(32)
  const storage = await open(before, { auditKey })
  await fill(storage)
  const file = newFile()
  const { id } = await backUp(before, file)
  expect(await putBack(after, file)).toMatchObject({ id })
  const [old, restored] = [observe(before), observe(after)]
  for (const sql of everything) expect(await restored.all(sql)).toEqual(await old.all(sql))
  const [mark] = await restored.all("select value from memory where key = 'restored'")
  expect(JSON.parse(String(mark?.value))).toMatchObject({ backup: id, restoredAt: expect.any(String) })

  const next = await open(after, { auditKey })
  await next.recover()
  await next.claim(callOf('write'))
  expect(await sequencesIn(restored, next.instance)).toEqual([1])
})

describe.each(databases)('on %s', (kind) => {
  it('saves one moment while calls come and go', async () => {
    const [before, after] = [await emptyPlaceOn(kind), await emptyPlaceOn('SQLite')]
    const storage = await open(before)
    let going = true
    const load = Array.from({ length: 4 }, async () => {
      while (going) storage.finish(await storage.claim(callOf('write')), endOf('ok'))
    })
    const files = [newFile(), newFile(), newFile()]
    for (const file of files) await backUp(before, file)
    going = false
    await Promise.all(load)
    await putBack(after, files[2] ?? '')
    const observer = observe(after)
    const [{ calls } = {}] = await observer.all('select count(*) as calls from calls')
    expect(Number(calls)).toBeGreaterThan(0)
    expect(await observer.all("select count(*) as calls from audit where kind = 'intent'")).toEqual([{ calls }])
    const [{ ended } = {}] = await observer.all('select count(*) as ended from calls where ended_at is not null')
    expect(await observer.all("select count(*) as ended from audit where kind = 'outcome'")).toEqual([{ ended }])
    const entries = await sequencesIn(observer, storage.instance)
    expect(entries).toEqual(numbersUpTo(entries.length))
  })

  it('restores only where nothing is, and leaves what is there alone', async () => {
    const place = await emptyPlaceOn(kind)
    const storage = await open(place)
    const call = await storage.claim(callOf('write'))
    await storage.close()
    const file = newFile()
    await backUp(place, file)
    await expect(putBack(place, file)).rejects.toMatchObject({ code: 'data-not-empty' })
    expect(await observe(place).state(call.id)).toBe('running')
  })

  it('refuses a backup that was cut off, and restores nothing of it', async () => {
    await expectRefused(kind, (text) => text.slice(0, -100))
  })

  it('refuses a backup of a newer version', async () => {
    const [before, after] = [await emptyPlaceOn('SQLite'), await emptyPlaceOn(kind)]
    await open(before)
    const file = newFile()
    await backUp(before, file)
    writeFileSync(file, readFileSync(file, 'utf8').replace('"migrations":[1,', '"migrations":[1,9999,'))
    await expect(putBack(after, file)).rejects.toMatchObject({ code: 'storage-newer' })
  })

  it('says so where there is nothing to save', async () => {
    const place = await emptyPlaceOn(kind)
    await expect(backUp(place, newFile())).rejects.toMatchObject({ code: 'backup-failed' })
    expect(existsSync(join(place.folder, 'sallyport.db'))).toBe(false)
  })
})

it.each<[string, (text: string) => string]>([
  ['was cut off between lines', (text) => text.split('\n').slice(0, -2).join('\n')],
  ['lost a line', (text) => text.split('\n').toSpliced(5, 1).join('\n')],
  ['was changed', (text) => text.replace('agent:reviewer', 'agent:somebody')],
  ['goes on after its end', (text) => `${text}["more"]\n`],
  ['names a table that does not exist', (text) => text.replace('{"table":"calls"', '{"table":"sqlite_master"')],
  ['is something else', () => '{"servers":{}}\n'],
  ['is empty', () => ''],
])('refuses a backup that %s', async (_, damage) => {
  await expectRefused('SQLite', damage)
})

async function expectRefused(kind: DatabaseKind, damage: (text: string) => string): Promise<void> {
  const [before, after] = [await emptyPlaceOn('SQLite'), await emptyPlaceOn(kind)]
  const storage = await open(before)
  storage.finish(await storage.claim(callOf('write')), endOf('ok'))
  await storage.flush()
  const file = newFile()
  await backUp(before, file)
  writeFileSync(file, damage(readFileSync(file, 'utf8')))
  await expect(putBack(after, file)).rejects.toMatchObject({ code: 'backup-invalid' })
  expect(readdirSync(after.folder).filter((name) => name.startsWith('sallyport.db'))).toEqual([])
  // Whoever comes now finds the place as it was: empty.
  await (await open(after)).claim(callOf('write'))
}

it('keeps a backup from everybody else, and never writes over another file', async () => {
  const place = await emptyPlaceOn('SQLite')
  await open(place)
  const file = newFile()
  await backUp(place, file)
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
  await expect(backUp(place, file)).rejects.toMatchObject({ code: 'backup-failed' })
  const folder = `${file}-folder`
  mkdirSync(folder)
  await expect(backUp(place, folder)).rejects.toMatchObject({ code: 'backup-failed' })
  await expect(backUp(place, join(folder, 'missing', 'x'))).rejects.toMatchObject({ code: 'backup-failed' })
  expect(readdirSync(folder)).toEqual([])
})

it('does not restore into a folder that a gateway is about to use', async () => {
  const [before, after] = [await emptyPlaceOn('SQLite'), await emptyPlaceOn('SQLite')]
  const storage = await open(before)
  await storage.flush()
  const file = newFile()
  await backUp(before, file)
  const running = await open(after)
  onTestFinished(() => running.close())
  await expect(putBack(after, file)).rejects.toMatchObject({ code: 'data-locked' })
})
