import { createHash } from 'node:crypto'
import type { Client, ClientConfig, Pool } from 'pg'
import { GatewayError } from '../contract/errors.ts'

/** Nothing may hang for ever on a network that swallows what is sent. */
const connectMs = 5000
const statementMs = 30_000
const mostReaders = 4

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
}

/** A connection of its own for one task. `pipeline` sends statements without waiting for the answers of others. */
export async function connectPostgres(address: PostgresAddress, pipeline: boolean): Promise<Client> {
  const driver = await loadDriver()
  const client = new driver.Client({ ...toSettings(address, driver.types.getTypeParser), pipeline })
  client.on('error', () => {}) // whoever uses it hears of it by `end`
  try {
    await client.connect()
    return client
  } catch (error) {
    await client.end().catch(() => {})
    throw toUnavailable('The database cannot be reached', error, address.url)
  }
}

/** Connections for reading, made when they are needed. */
export async function createReaders(address: PostgresAddress): Promise<Pool> {
  const driver = await loadDriver()
  const settings = toSettings(address, driver.types.getTypeParser)
  const pool = new driver.Pool({ ...settings, max: mostReaders, idleTimeoutMillis: 60_000, allowExitOnIdle: true })
  pool.on('error', () => {})
  return pool
}

type GetTypeParser = typeof import('pg').types.getTypeParser

function toSettings({ url, name }: PostgresAddress, getTypeParser: GetTypeParser): ClientConfig {
  const toParser: GetTypeParser = (type: number, format?: 'text' | 'binary') =>
    type === bigint || type === numeric ? Number : getTypeParser(type, format)
  return {
    connectionString: parseDatabaseUrl(url).href,
    application_name: name,
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs,
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
  return error.message === '' ? code : `${error.message}${code === '' ? '' : ` (${code})`}`
}

export function hidePassword(text: string, url: string): string {
  const { password } = parseDatabaseUrl(url)
  if (password === '') return text
  return text.replaceAll(decodeURIComponent(password), '[secret]').replaceAll(password, '[secret]')
}

/** Advisory locks are numbers: this is the one of a name, the same for every program that knows it. */
export function toLockKey(name: string): string {
  return createHash('sha256').update(`sallyport:${name}`).digest().readBigInt64BE().toString()
}
