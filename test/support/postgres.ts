import { createServer, type Server } from 'node:http'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'

/** Where a test asks for the run's PostgreSQL server: it is started when somebody first does. */
const variable = 'SALLYPORT_TEST_POSTGRES'

/** In the process that starts all tests: one server for the whole run. Call what it returns when all are done. */
export async function offerPostgres(): Promise<() => Promise<void>> {
  let starting: Promise<PostgresServer> | undefined
  const desk = createServer((_, response) => {
    starting ??= startPostgresServer()
    starting.then(
      (server) => response.end(server.url()),
      (error) => response.writeHead(500).end(String(error)),
    )
  })
  process.env[variable] = `http://127.0.0.1:${await listen(desk)}`
  return async () => {
    desk.closeAllConnections()
    desk.close()
    await starting?.then((server) => server.close()).catch(() => {})
  }
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

/** An empty database for one test, gone with it; the address to give as `databaseUrl`. */
export async function freshDatabase(): Promise<string> {
  const server = await serverUrl()
  const name = `test_${process.pid}_${++made}`
  await runOn(server, `create database ${name}`)
  onTestFinished(async () => void (await runOn(server, `drop database if exists ${name} with (force)`)))
  return new URL(name, server).href
}

/** Somebody else at the same database, as an operator at a terminal could be. Numbers come back as numbers. */
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

/** Sets the clock of one database, for connections that are opened from now on. Its own functions are found later. */
export async function moveDatabaseClock(url: string, milliseconds: number): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await runOn(
    url,
    `create or replace function public.clock_timestamp() returns timestamptz language sql volatile
     as $$ select pg_catalog.clock_timestamp() + interval '${milliseconds} milliseconds' $$`,
  )
  await runOn(url, `alter database ${name} set search_path = public, pg_catalog`)
}
