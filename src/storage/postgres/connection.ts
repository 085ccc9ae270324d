import { Socket } from 'node:net'
import type { Client, ClientConfig, Pool } from 'pg'
import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'

/** Every statement has a deadline: a network may swallow everything that is sent. */
const mostConnectMs = 5000
const statementMs = 30_000
const readMs = 10_000
const mostReaders = 4
/** How long a connection may take to say goodbye. */
const goodbyeMs = 1000

/** The types of PostgreSQL that are numbers here: bigint holds times and counts, numeric their sums. */
const bigint = 20
const numeric = 1700

/** Loaded when somebody has a PostgreSQL: nobody else pays for it. */
async function loadDriver() {
  const { default: driver } = await import('pg')
  return driver
}

export type PostgresAddress = {
  readonly url: string
  /** Stands beside each connection in `pg_stat_activity`, and tells the instance's own from others. */
  readonly name: string
  /** Longest that a statement may take. */
  readonly timeoutMs?: number
  /** Longest that connecting may take. */
  readonly connectMs?: number
}

export type PostgresLink = {
  readonly client: Client
  /** Resolves when the connection is gone. */
  readonly lost: Promise<void>
  /** Bytes that have arrived: whether the database says anything. */
  heard(): number
  /** Ends the connection at once, without a word to the server. Statements under way fail. */
  cut(): void
  /** Never hangs: a server that does not answer is left. */
  close(): Promise<void>
}

/** A connection of its own for one task. `pipeline` sends statements without waiting for the answers of others. */
export async function connectPostgres(address: PostgresAddress, pipeline: boolean): Promise<PostgresLink> {
  const driver = await loadDriver()
  const socket = new Socket()
  const settings = toSettings(address, driver.types.getTypeParser)
  const client = new driver.Client({ ...settings, pipeline, stream: () => socket })
  const lost = Promise.withResolvers<void>()
  client.on('error', () => {}) // whoever uses it hears of it by `lost`
  client.once('end', () => lost.resolve())

  async function close(): Promise<void> {
    const timer = setTimeout(() => socket.destroy(), goodbyeMs)
    await client.end().catch(() => {})
    clearTimeout(timer)
  }

  try {
    await client.connect()
    return { client, lost: lost.promise, heard: () => socket.bytesRead, cut: () => void socket.destroy(), close }
  } catch (error) {
    socket.destroy()
    throw toUnavailable('The database cannot be reached', error, address.url)
  }
}

/** Cuts the connection when the time is over, so that whatever waits for an answer on it fails. */
export async function withDeadline<Result>(link: PostgresLink, milliseconds: number, work: Promise<Result>) {
  const timer = setTimeout(link.cut, milliseconds)
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}

const looks = 4

/**
 * Cuts the connection when no byte has arrived for so long while `work` waits for answers, and tells whether it had to. A
 * batch may take longer than that as long as the database answers one statement after the other.
 */
export async function unlessSilent(
  { link, clock, silenceMs }: { link: PostgresLink; clock: Pick<Clock, 'after'>; silenceMs: number },
  work: Promise<void>,
): Promise<void> {
  let [heard, quiet] = [link.heard(), 0]
  let over = false
  let cancel = clock.after(silenceMs / looks, look)
  function look(): void {
    // What has arrived is read first: this process may have been stopped, and not the database.
    setImmediate(() => {
      if (over) return
      quiet = link.heard() === heard ? quiet + 1 : 0
      heard = link.heard()
      if (quiet >= looks) return link.cut()
      cancel = clock.after(silenceMs / looks, look)
    })
  }
  try {
    await work
  } finally {
    over = true
    cancel()
  }
}

/** A connection of the same name that we lost may linger on the server: its end is asked for, so that its locks come free. */
export async function endEarlier(client: Client, name: string): Promise<void> {
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()',
    [name],
  )
}

/** Connections for reading, made when they are needed. */
export async function createReaders(address: PostgresAddress): Promise<Pool> {
  const driver = await loadDriver()
  const settings = toSettings({ timeoutMs: readMs, ...address }, driver.types.getTypeParser)
  const pool = new driver.Pool({
    ...settings,
    max: mostReaders,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
    // The server gives up as well, instead of working on for nobody.
    onConnect: (client) => client.query(`set statement_timeout = ${readMs}`),
  })
  pool.on('error', () => {})
  return pool
}

type GetTypeParser = typeof import('pg').types.getTypeParser

function toSettings(
  { url, name, timeoutMs = statementMs, connectMs = mostConnectMs }: PostgresAddress,
  getTypeParser: GetTypeParser,
): ClientConfig {
  const toParser: GetTypeParser = (type: number, format?: 'text' | 'binary') =>
    type === bigint || type === numeric ? Number : getTypeParser(type, format)
  return {
    connectionString: parseDatabaseUrl(url).href,
    application_name: name,
    connectionTimeoutMillis: Math.min(connectMs, mostConnectMs, timeoutMs),
    query_timeout: timeoutMs,
    keepAlive: true,
    types: { getTypeParser: toParser },
  }
}

/** Throws `request-invalid` without repeating the text: it may hold a password. */
export function parseDatabaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && ['postgres:', 'postgresql:'].includes(url.protocol)) return url
  throw new GatewayError(
    'request-invalid',
    'SALLYPORT_DATABASE_URL is not an address such as postgres://user:password@host:5432/database',
  )
}

/** The address without its password, for people. */
export function describeDatabaseUrl(text: string): string {
  const { hostname, port, pathname } = parseDatabaseUrl(text)
  return `${hostname}${port === '' ? '' : `:${port}`}${pathname}`
}

export function toUnavailable(what: string, error: unknown, url: string): GatewayError {
  return new GatewayError('storage-unavailable', `${what}: ${hidePassword(toMessage(error), url)}`)
}

function toMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? String(error.code) : ''
  const words = troubles[code] ?? (error.message === poolTimeout ? readersBusy : undefined)
  const said = error.message === '' ? code : `${error.message}${code === '' ? '' : ` (${code})`}`
  return words === undefined ? said : `${words} (PostgreSQL: ${said})`
}

/** What a person can do something about, by the code of PostgreSQL. */
const troubles: Readonly<Record<string, string>> = {
  '53300':
    'PostgreSQL has no connection left. A gateway needs about seven: raise max_connections, or the limit of the role ' +
    'or database, or stop other programs that use them',
  '53100': 'the disk of PostgreSQL is full',
  '25006': 'the database is read-only, for example a standby',
  '57P03': 'PostgreSQL does not accept connections yet',
}

/** What the driver says when a query got no connection of its pool in time. */
const poolTimeout = 'timeout exceeded when trying to connect'
const readersBusy = 'all connections of this gateway for reading are in use, or the database does not answer'

export function hidePassword(text: string, url: string): string {
  const { password } = parseDatabaseUrl(url)
  if (password === '') return text
  return text.replaceAll(decodeURIComponent(password), '[secret]').replaceAll(password, '[secret]')
}

/** Advisory locks are numbers: these are the ones of names, worked out by the database itself. */
export const migrationsLock = toLock("'migrations'")
/** Held by whoever writes for an instance. */
export const writerLock = (instance: string) => toLock(`'writer:' || ${instance}`)
/** Held as long as an instance lives. */
export const instanceLock = (instance: string) => toLock(`'instance:' || ${instance}`)

function toLock(name: string): string {
  return `hashtextextended('sallyport:' || ${name}, 0)`
}
