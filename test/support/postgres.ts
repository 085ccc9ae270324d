import { createServer, type Server } from 'node:http'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { migratePostgres } from '../../src/storage/postgres/migrate.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'

/** Contains an address that returns the URL of the run's PostgreSQL server. The first request starts the server. */
const variable = 'SALLYPORT_TEST_POSTGRES'

/** Called in the process that starts all tests: one server for the whole run. The returned function stops it. */
export async function offerPostgres(): Promise<() => Promise<void>> {
  let starting: Promise<PostgresServer> | undefined
  const addressServer = createServer((_, response) => {
    starting ??= startMigrated()
    starting.then(
      (server) => response.end(server.url()),
      (error) => response.writeHead(500).end(String(error)),
    )
  })
  process.env[variable] = `http://127.0.0.1:${await listen(addressServer)}`
  return async () => {
    addressServer.closeAllConnections()
    addressServer.close()
    await starting?.then((server) => server.close()).catch(() => {})
  }
}

/** A migrated database, of which most tests get a copy: a copy takes half the time of the migrations. */
const template = 'migrated'

async function startMigrated(): Promise<PostgresServer> {
  const server = await startPostgresServer()
  await runOn(server.url(), `create database ${template}`)
  const client = await connectTo(server.url(template))
  await migratePostgres(client, Date.now())
  await client.end()
  return server
}

async function listen(server: Server): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.once('error', reject)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address !== null && typeof address !== 'string') resolve(address.port)
  })
  return promise
}

async function serverUrl(): Promise<string> {
  const answer = await fetch(process.env[variable] ?? '')
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}

let made = 0

/** A database for one test with its tables and without rows; the address to give as `databaseUrl`. */
export function freshDatabase(): Promise<string> {
  return createDatabase(`template ${template}`)
}

/** A database for one test without tables: the gateway that opens it migrates it. */
export function emptyDatabase(): Promise<string> {
  return createDatabase('')
}

async function createDatabase(how: string): Promise<string> {
  const server = await serverUrl()
  const name = `test_${process.pid}_${++made}`
  await runOn(server, `create database ${name} ${how}`)
  onTestFinished(async () => void (await runOn(server, `drop database if exists ${name} with (force)`)))
  return new URL(name, server).href
}

/** A separate client of the same database, for example an operator with psql. Returns bigint columns as numbers. */
export async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, types: { getTypeParser } })
  client.on('error', () => {})
  await client.connect()
  return client
}

export async function runOn(url: string, sql: string, parameters: readonly unknown[] = []): Promise<Row[]> {
  const client = await connectTo(url)
  try {
    return (await client.query(sql, [...parameters])).rows
  } finally {
    await client.end()
  }
}

type Row = Record<string, unknown>

const bigint = 20

const getTypeParser: typeof pg.types.getTypeParser = (type: number, format?: 'text' | 'binary') =>
  type === bigint ? Number : pg.types.getTypeParser(type, format)

/**
 * Moves the clock of one database, for connections that are opened from now on: a function in `public` hides the function
 * of the same name in `pg_catalog`.
 */
export async function moveDatabaseClock(url: string, milliseconds: number): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await runOn(
    url,
    `create or replace function public.clock_timestamp() returns timestamptz language sql volatile
     as $$ select pg_catalog.clock_timestamp() + interval '${milliseconds} milliseconds' $$`,
  )
  await runOn(url, `alter database ${name} set search_path = public, pg_catalog`)
}
