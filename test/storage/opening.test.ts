import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { migrations } from '../../src/storage/migrations.ts'
import { type Connection, migrate } from '../../src/storage/sqlite/file.ts'
import { startClaimingProcess } from './child.ts'
import { callOf, changeFile, open, readerOf, temporaryFolder } from './support.ts'

it('keeps folder and files from everybody else', async () => {
  const folder = join(temporaryFolder(), 'data')
  const storage = await open(folder)
  await storage.claim(callOf('write'))
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  for (const file of ['sallyport.db', 'sallyport.db-wal', 'sallyport.db-shm', 'gateway.lock']) {
    expect([file, (statSync(join(folder, file)).mode & 0o777).toString(8)]).toEqual([file, '600'])
  }
})

it('refuses a folder that another gateway in this process has', async () => {
  const folder = temporaryFolder()
  const first = await open(folder)
  await expect(open(folder)).rejects.toMatchObject({ code: 'data-locked' })
  await first.claim(callOf('write'))
  await first.close()
  const second = await open(folder)
  await second.claim(callOf('write'))
})

it('names the gateway that has the folder, and gets it as soon as that one was killed', async () => {
  const folder = temporaryFolder()
  const other = await startClaimingProcess({ folder }, 'hold')
  await expect(open(folder)).rejects.toMatchObject({
    code: 'data-locked',
    message: expect.stringContaining(folder),
  })
  writeFileSync(join(folder, 'gateway.json'), JSON.stringify({ pid: 4242, url: 'http://127.0.0.1:4777' }))
  await expect(open(folder)).rejects.toMatchObject({
    code: 'data-locked',
    message: `The data folder ${folder} is in use by another gateway (process 4242, http://127.0.0.1:4777)`,
    details: { pid: 4242, url: 'http://127.0.0.1:4777' },
  })
  await other.kill()
  const storage = await open(folder)
  await storage.claim(callOf('write'))
})

it('lets exactly one of many gateways that start at once have the folder', async () => {
  const folder = temporaryFolder()
  const opened = await Promise.allSettled(Array.from({ length: 6 }, () => open(folder)))
  const refused = opened.filter((result) => result.status === 'rejected')
  expect(refused).toHaveLength(5)
  for (const { reason } of refused) expect(reason).toMatchObject({ code: 'data-locked' })
})

it('says so when the folder cannot be used at all', async () => {
  const file = join(temporaryFolder(), 'not-a-folder')
  writeFileSync(file, '')
  await expect(open(file)).rejects.toMatchObject({ code: 'storage-unavailable' })
})

it('refuses data that a newer program wrote, changes nothing in it, and lets go of it', async () => {
  const folder = temporaryFolder()
  await (await open(folder)).close()
  changeFile(folder, "insert into migrations values (9999, 'from the future', 1)")
  await expect(open(folder)).rejects.toMatchObject({ code: 'storage-newer' })
  expect(readerOf(folder).all('select count(*) as count from instances')).toEqual([{ count: 1 }])
  changeFile(folder, 'delete from migrations where id = 9999')
  await open(folder)
})

it('applies each migration once, and none of a list that fails on the way', () => {
  const folder = temporaryFolder()
  const connection: Connection = new Sqlite(join(folder, 'sallyport.db'))
  onTestFinished(() => void connection.close())
  const applied = () => connection.prepare('select id from migrations').pluck().all()
  const shipped = migrations.map(({ id }) => id)
  const next = { id: 1001, name: 'a note on calls', statements: ['alter table calls add column note text'] }
  const broken = { id: 1002, name: 'broken', statements: ['create table extra (id text)', 'this is not SQL'] }

  migrate(connection, 1)
  migrate(connection, 1)
  expect(applied()).toEqual(shipped)
  expect(() => migrate(connection, 1, [...migrations, next, broken])).toThrow()
  expect(applied()).toEqual(shipped)
  migrate(connection, 1, [...migrations, next])
  expect(applied()).toEqual([...shipped, 1001])
})
