import { Socket } from 'node:net'
import type { Client, ClientConfig, Pool } from 'pg'
import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'

/** Every statement has a deadline, because a network can drop packets without an error. */
const mostConnectMs = 5000
const statementMs = 30_000
const readMs = 10_000
const mostReaders = 4
/** How long closing a connection may take before its socket is destroyed. */
const closeMs = 1000

/** PostgreSQL types that are read as numbers: bigint for times and counts, numeric for their sums. */
const bigint = 20
const numeric = 1700

/** Imported only when needed, so that installations with SQLite do not load the driver. */
async function loadDriver() {
  const { default: driver } = await import('pg')
  return driver
}

export type PostgresAddress = {
  readonly url: string
  /** The `application_name` in `pg_stat_activity`, by which an instance recognises its own connections. */
  readonly name: string
  /** The maximum time for a statement. */
  readonly timeoutMs?: number
  /** The maximum time for connecting. */
  readonly connectMs?: number
}

export type PostgresLink = {
  readonly client: Client
  /** Resolves when the connection is lost. */
  readonly lost: Promise<void>
  /** The number of bytes received, to detect a database that does not answer. */
  heard(): number
  /** Destroys the socket at once. Running statements fail. */
  cut(): void
  /** Closes the connection. Does not wait for a server that does not answer. */
  close(): Promise<void>
}

/** Opens a separate connection. `pipeline`: statements are sent without waiting for the answers of earlier ones. */
export async function connectPostgres(address: PostgresAddress, pipeline: boolean): Promise<PostgresLink> {
  const driver = await loadDriver()
  const socket = new Socket()
  const settings = toSettings(address, driver.types.getTypeParser)
  const client = new driver.Client({ ...settings, pipeline, stream: () => socket })
  const lost = Promise.withResolvers<void>()
  client.on('error', () => {}) // callers use `lost` instead
  client.once('end', () => lost.resolve())

  async function close(): Promise<void> {
    const timer = setTimeout(() => socket.destroy(), closeMs)
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

/** Destroys the socket after `milliseconds`, so that `work` fails. */
export async function withDeadline<Result>(link: PostgresLink, milliseconds: number, work: Promise<Result>) {
  const timer = setTimeout(link.cut, milliseconds)
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}

const checks = 4

/**
 * Destroys the socket if no byte has arrived for `silenceMs` while `work` is running. A batch may take longer, as long
 * as the database answers one statement after the other.
 */
export async function unlessSilent(
  { link, clock, silenceMs }: { link: PostgresLink; clock: Pick<Clock, 'after'>; silenceMs: number },
  work: Promise<void>,
): Promise<void> {
  let [heard, quiet] = [link.heard(), 0]
  let over = false
  let cancel = clock.after(silenceMs / checks, check)
  function check(): void {
    // Lets received data be processed first: this process may have been suspended, not the database.
    setImmediate(() => {
      if (over) return
      quiet = link.heard() === heard ? quiet + 1 : 0
      heard = link.heard()
      if (quiet >= checks) return link.cut()
      cancel = clock.after(silenceMs / checks, check)
    })
  }
  try {
    await work
  } finally {
    over = true
    cancel()
  }
}

/** Ends an earlier lost connection of the same name that is still open on the server, so that its locks are released. */
export async function endEarlier(client: Client, name: string): Promise<void> {
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()',
    [name],
  )
}

/** A pool of connections for reading, opened on demand. */
export async function createReaders(address: PostgresAddress): Promise<Pool> {
  const driver = await loadDriver()
  const settings = toSettings({ timeoutMs: readMs, ...address }, driver.types.getTypeParser)
  const pool = new driver.Pool({
    ...settings,
    max: mostReaders,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
    // The server also cancels the statement, so that it does not keep working for a client that gave up.
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

/** Throws `request-invalid` without the text, which may contain a password. */
export function parseDatabaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && ['postgres:', 'postgresql:'].includes(url.protocol)) return url
  throw new GatewayError(
    'request-invalid',
    'SALLYPORT_DATABASE_URL must be a URL such as postgres://user:password@host:5432/database',
  )
}

/** The URL without user and password, to show to people. */
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

/** Explanations for errors that an operator can fix, by PostgreSQL error code. */
const troubles: Readonly<Record<string, string>> = {
  '53300':
    'PostgreSQL has no free connections. A gateway needs about seven: raise max_connections, or the limit of the role ' +
    'or database, or stop other programs that use them',
  '53100': 'the disk of PostgreSQL is full',
  '25006': 'the database is read-only, for example a standby',
  '57P03': 'PostgreSQL does not accept connections yet',
}

/** The driver's message if no connection of the pool became free in time. */
const poolTimeout = 'timeout exceeded when trying to connect'
const readersBusy = 'all connections of this gateway for reading are in use, or the database does not answer'

export function hidePassword(text: string, url: string): string {
  const { password } = parseDatabaseUrl(url)
  if (password === '') return text
  return text.replaceAll(decodeURIComponent(password), '[secret]').replaceAll(password, '[secret]')
}

/** Advisory locks are numbers. The database computes the number of each lock from a name. */
export const migrationsLock = toLock("'migrations'")
/** Held by the connection that writes for an instance. */
export const writerLock = (instance: string) => toLock(`'writer:' || ${instance}`)
/** Held while an instance is alive. */
export const instanceLock = (instance: string) => toLock(`'instance:' || ${instance}`)

function toLock(name: string): string {
  return `hashtextextended('sallyport:' || ${name}, 0)`
}
