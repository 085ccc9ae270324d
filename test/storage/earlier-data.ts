import { readFileSync } from 'node:fs'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Sqlite from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { migrations } from '../../src/storage/migrations.ts'
import { migratePostgres } from '../../src/storage/postgres/migrate.ts'
import { connectTo } from '../support/postgres.ts'
import { type DatabaseKind, emptyPlaceOn, type Place } from './support.ts'

const Facts = z.object({
  token: z.string(),
  session: z.string(),
  signIn: z.object({ cookie: z.string() }),
  ok: z.string(),
  keyed: z.string(),
  handle: z.string(),
  grants: z.object({ grant: z.string(), revoked: z.string() }),
  approvals: z.record(z.string(), z.object({ id: z.string(), state: z.string() })),
  now: z.int(),
  migrations: z.string(),
})

/** The migrations that the data went through when they were made. */
export const before = migrations.slice(0, 14)

export function fixture(kind: DatabaseKind, name: string): string {
  return fileURLToPath(new URL(`../fixtures/data/${kind.toLowerCase()}/${name}`, import.meta.url))
}

export const factsOf = (kind: DatabaseKind) =>
  Facts.parse(JSON.parse(readFileSync(fixture(kind, 'facts.json'), 'utf8')))

/** A gateway of today on the data of then. */
export async function openEarlier(kind: DatabaseKind, now = factsOf(kind).now): Promise<Gateway & { place: Place }> {
  const { folder, databaseUrl } = await emptyPlaceOn(kind)
  const dataFolder = join(folder, 'data')
  await mkdir(dataFolder, { mode: 0o700 })
  await copyFile(fixture(kind, 'anchors.jsonl'), join(dataFolder, 'anchors.jsonl'))
  const rows = await readFile(fixture(kind, 'rows.sql'), 'utf8')
  if (databaseUrl === undefined) fillSqlite(join(dataFolder, 'sallyport.db'), rows)
  else await fillPostgres(databaseUrl, rows)
  const configFile = join(folder, 'sallyport.json')
  await writeFile(configFile, await readFile(fixture(kind, 'sallyport.json')))
  const gateway = await createGateway({
    configFile,
    dataFolder,
    databaseUrl,
    environment: { SALLYPORT_KEY: Buffer.alloc(32, 7).toString('base64') },
    clock: { ...systemClock, common: true as const, now: () => now },
    graceMs: 100,
  })
  onTestFinished(() => gateway.close())
  return { ...gateway, place: { folder: dataFolder, ...(databaseUrl !== undefined && { databaseUrl }) } }
}

export function fillSqlite(file: string, rows: string): void {
  const database = new Sqlite(file)
  database.exec(`begin; ${rows} commit;`)
  database.close()
}

async function fillPostgres(url: string, rows: string): Promise<void> {
  const client = await connectTo(url)
  await migratePostgres(client, 0, before)
  // The rows are in the order of table names, so foreign keys are not checked while they are inserted.
  await client.query(`set session_replication_role = replica; ${rows}`)
  await client.end()
}
