import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { compactFolder } from '../../src/storage/sqlite/compact.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { callOf, changeFile, open, placeOn, readerOf, temporaryFolder } from './support.ts'

const never = new AbortController().signal

/** What an operator finds in the file, whatever its size. */
function contentOf(folder: string): unknown {
  const { all } = readerOf(folder)
  const tables = all("select name from sqlite_master where type = 'table' order by name").map(({ name }) =>
    String(name),
  )
  return Object.fromEntries(tables.map((name) => [name, all(`select * from ${name} order by 1, 2`)]))
}

function pragma(folder: string, name: string): number {
  const connection = new Sqlite(join(folder, 'sallyport.db'), { readonly: true })
  try {
    return Number(connection.pragma(name, { simple: true }))
  } finally {
    connection.close()
  }
}

async function fill(storage: Storage, calls: number, bytes = 20_000): Promise<void> {
  const filler = { tool: 'filler', arguments: { text: 'x'.repeat(bytes) } }
  for (let call = 0; call < calls; call++) await storage.claim(callOf('write', filler))
}

const removal = ["delete from calls where tool = 'filler'", "delete from audit where subject = 'filler'"]

/** A file from before files could be compacted in steps. */
async function makeOldFile(folder: string, calls: number): Promise<void> {
  const storage = await open(folder)
  await fill(storage, calls)
  await storage.close()
  changeFile(folder, 'pragma auto_vacuum = none', 'vacuum')
  expect(pragma(folder, 'auto_vacuum')).toBe(0)
}

describe('a SQLite file', () => {
  it('gives room back while it is in use, and keeps all that is in it', async () => {
    const folder = temporaryFolder()
    const storage = await open(folder)
    await fill(storage, 200)
    await storage.claim(callOf('write'))
    changeFile(folder, ...removal)
    const before = contentOf(folder)
    const done = await storage.compact()
    expect(done).toMatchObject({ database: 'sqlite' })
    expect(done.after ?? 0).toBeLessThan((done.before ?? 0) / 2)
    expect(pragma(folder, 'freelist_count')).toBe(0)
    expect(contentOf(folder)).toEqual(before)
    await storage.claim(callOf('write'))
  })

  it('lets calls pass between the steps', async () => {
    const folder = temporaryFolder()
    const storage = await open(folder)
    await fill(storage, 300)
    changeFile(folder, ...removal)
    const order: string[] = []
    const reclaiming = storage.reclaim(never).then(() => order.push('compacted'))
    for (let call = 0; call < 5; call++) await storage.claim(callOf('write')).then(() => order.push('call'))
    await reclaiming
    expect(order).toEqual(['call', 'call', 'call', 'call', 'call', 'compacted'])
    expect(pragma(folder, 'freelist_count')).toBe(0)
  })

  it('stops giving room back when it is told to, and loses nothing', async () => {
    const folder = temporaryFolder()
    const storage = await open(folder)
    await fill(storage, 200)
    changeFile(folder, ...removal)
    const before = contentOf(folder)
    const ending = new AbortController()
    const reclaiming = storage.reclaim(ending.signal)
    await storage.flush()
    ending.abort()
    await reclaiming
    expect(pragma(folder, 'freelist_count')).toBeGreaterThan(0)
    expect(contentOf(folder)).toEqual(before)
  })

  it('of an earlier version is written again as a whole once, and is ready for steps afterwards', async () => {
    const folder = temporaryFolder()
    await makeOldFile(folder, 100)
    const storage = await open(folder)
    changeFile(folder, ...removal)
    const before = contentOf(folder)
    await storage.reclaim(never)
    expect(pragma(folder, 'freelist_count')).toBeGreaterThan(0)
    const done = await storage.compact()
    expect(done.after ?? 0).toBeLessThan((done.before ?? 0) / 2)
    expect(pragma(folder, 'auto_vacuum')).toBe(2)
    expect(contentOf(folder)).toEqual(before)
  })

  it('is compacted once for all who ask at the same time', async () => {
    const folder = temporaryFolder()
    const storage = await open(folder)
    await fill(storage, 50)
    changeFile(folder, ...removal)
    const [one, two] = await Promise.all([storage.compact(), storage.compact()])
    expect(one).toEqual(two)
  })

  it('is what it was when the disk is full in the middle, and says so', async () => {
    const folder = temporaryFolder()
    await makeOldFile(folder, 900)
    // The map that steps need takes one page for 820 others, and there is no room for it.
    const storage = await open(folder, { maxPages: pragma(folder, 'page_count') + 4 })
    const before = contentOf(folder)
    const failure = storage.compact()
    await expect(failure).rejects.toMatchObject({ code: 'compact-failed' })
    await expect(failure).rejects.toThrow(
      /the disk is full \(SQLITE_FULL\)\. Nothing was lost\. .* MB of free disk space/,
    )
    expect(contentOf(folder)).toEqual(before)
    expect(statSync(join(folder, 'sallyport.db-wal')).size).toBe(0)
    changeFile(folder, ...removal)
    await storage.compact()
    await expect.poll(() => storage.healthy(), { timeout: 10_000 }).toBe(true)
    await storage.claim(callOf('write'))
  })

  it('is compacted without a gateway too, and by nobody else at that time', async () => {
    const folder = temporaryFolder()
    await makeOldFile(folder, 100)
    changeFile(folder, ...removal)
    const before = contentOf(folder)
    const { before: large = 0, after: small = 0 } = compactFolder(folder)
    expect(small).toBeLessThan(large / 2)
    expect(statSync(join(folder, 'sallyport.db')).size).toBe(small)
    expect(pragma(folder, 'auto_vacuum')).toBe(2)
    expect(contentOf(folder)).toEqual(before)
    await open(folder)
    expect(() => compactFolder(folder)).toThrow(expect.objectContaining({ code: 'data-locked' }))
    expect(() => compactFolder(temporaryFolder())).toThrow(expect.objectContaining({ code: 'not-found' }))
  })

  it('is whole after the program that compacts it was killed at any moment', async () => {
    const folder = temporaryFolder()
    await makeOldFile(folder, 400)
    changeFile(folder, "delete from calls where tool = 'filler'")
    const before = contentOf(folder)
    const program = `import { compactFolder } from ${JSON.stringify(compactFile)}; console.log('begins'); compactFolder(${JSON.stringify(folder)})`
    for (let round = 0; round < 8; round++) {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const ended = once(child, 'exit')
      await once(child.stdout, 'data')
      await new Promise((resolve) => setTimeout(resolve, round * 8))
      child.kill('SIGKILL')
      await ended
      const connection = new Sqlite(join(folder, 'sallyport.db'))
      expect(connection.pragma('integrity_check', { simple: true })).toBe('ok')
      connection.close()
    }
    expect(contentOf(folder)).toEqual(before)
    const storage = await open(folder)
    await storage.claim(callOf('write'))
  })
})

const compactFile = join(import.meta.dirname, '../../src/storage/sqlite/compact.ts')

it('is left to PostgreSQL, which does it itself', async () => {
  const storage = await open(await placeOn('PostgreSQL'))
  await storage.reclaim(never)
  const done = await storage.compact()
  expect(done).toMatchObject({ database: 'postgresql', advice: expect.stringContaining('VACUUM (FULL, ANALYZE)') })
  expect(done.before).toBeGreaterThan(1_000_000)
  expect(done.after).toBe(done.before)
})
