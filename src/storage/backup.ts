import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { z } from 'zod'
import { GatewayError } from '../contract/errors.ts'
import { toSystemReason } from '../contract/system-error.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import { linkFile } from '../lib/durable-file.ts'
import type { Ids } from '../lib/ids.ts'
import { parseJson } from '../lib/json.ts'
import type { DatabaseKind } from './backend.ts'
import { migrations } from './migrations.ts'

export type BackupRow = readonly (string | number | null)[]

/** A consistent snapshot of a database. Concurrent writes do not change it. */
export type BackupSource = {
  readonly kind: DatabaseKind
  /** The migrations that were applied to it. */
  readonly applied: readonly number[]
  columns(table: string): Promise<readonly string[]>
  pages(table: string, columns: readonly string[]): AsyncIterable<readonly BackupRow[]>
  close(): Promise<void>
}

/** An empty database that receives the whole backup or nothing. */
export type BackupTarget = {
  prepare(applied: readonly number[]): Promise<void>
  insert(table: string, columns: readonly string[], rows: readonly BackupRow[]): Promise<void>
  /** Makes the inserted data permanent. */
  finish(): Promise<void>
  abandon(): Promise<void>
}

export type BackupFacts = {
  readonly id: string
  readonly createdAt: string
  readonly database: DatabaseKind
  readonly rows: number
}

/**
 * The file format, the same for both databases: a header, then the columns and rows of each table, then the row count
 * and checksum.
 */
const Header = z.object({
  sallyport: z.literal('backup'),
  version: z.literal(1),
  id: z.string(),
  createdAt: z.string(),
  database: z.enum(['sqlite', 'postgresql']),
  migrations: z.array(z.int()),
})
const Line = z.union([
  z.array(z.union([z.string(), z.number(), z.null()])),
  z.object({ table: z.string(), columns: z.array(z.string().regex(/^[a-z_]+$/)).min(1) }),
  z.object({ rows: z.int(), sha256: z.string() }),
])

/** The key in the table `memory` that names the backup the data was restored from. The audit verification reports it. */
const restoredKey = 'restored'

/** The tables that exist after these migrations, in the order of creation, so that rows only refer to earlier tables. */
function tablesOf(applied: readonly number[]): string[] {
  const statements = migrations.filter(({ id }) => applied.includes(id)).flatMap((migration) => migration.statements)
  const tables: string[] = []
  for (const statement of statements) {
    const created = /^\s*create table (?:if not exists )?(\w+)/.exec(statement)?.[1]
    if (created !== undefined) tables.push(created)
    const [, from, to] = /^\s*alter table (\w+) rename to (\w+)/.exec(statement) ?? []
    if (from !== undefined && to !== undefined) tables.splice(tables.indexOf(from), 1, to)
  }
  return tables
}

type WriteParts = { source: BackupSource; file: string; clock: Clock; ids: Ids }

export async function writeBackup({ source, file, clock, ids }: WriteParts): Promise<BackupFacts> {
  const draft = `${file}.${process.pid}.partial`
  const handle = await open(draft, 'wx', 0o600).catch((error: unknown) => {
    throw new GatewayError('backup-failed', `${file} cannot be written: ${toSystemReason(error)}`)
  })
  try {
    const facts = { id: ids.next('backup'), createdAt: toIso(clock.now()), database: source.kind }
    const rows = await writeLines(handle, source, facts)
    await handle.sync()
    // Never overwrites a file, because it may be the user's only backup.
    await linkFile(draft, file).catch((error: unknown) => {
      throw new GatewayError('backup-failed', `${file} cannot be written: ${toSystemReason(error)}`)
    })
    return { ...facts, rows }
  } finally {
    await handle.close()
    await rm(draft, { force: true })
  }
}

async function writeLines(handle: FileHandle, source: BackupSource, facts: Omit<BackupFacts, 'rows'>): Promise<number> {
  const digest = createHash('sha256')
  const write = async (lines: readonly unknown[]) => {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    digest.update(text)
    await handle.appendFile(text)
  }
  await write([{ sallyport: 'backup', version: 1, ...facts, migrations: source.applied }])
  let rows = 0
  for (const table of tablesOf(source.applied)) {
    const columns = await source.columns(table)
    await write([{ table, columns }])
    for await (const page of source.pages(table, columns)) {
      await write(page)
      rows += page.length
    }
  }
  await handle.appendFile(`${JSON.stringify({ rows, sha256: digest.digest('hex') })}\n`)
  return rows
}

type RestoreParts = { target: BackupTarget; file: string; clock: Clock }

const rowsAtOnce = 500
const longestLine = 1 << 28

export async function restoreBackup({ target, file, clock }: RestoreParts): Promise<BackupFacts> {
  try {
    const facts = await readInto(target, file, clock)
    await target.finish()
    return facts
  } catch (error) {
    await target.abandon()
    throw error
  }
}

async function readInto(target: BackupTarget, file: string, clock: Clock): Promise<BackupFacts> {
  const lines = readLines(file)
  const first = await lines.next()
  const header = parseHeader(file, first.value)
  const known = new Set(migrations.map(({ id }) => id))
  if (header.migrations.some((id) => !known.has(id))) {
    throw new GatewayError('storage-newer', `${file} was written by a newer version of Sallyport`)
  }
  await target.prepare(header.migrations)
  const digest = createHash('sha256').update(`${first.value}\n`)
  const rows = await readTables({ target, file, lines, digest, tables: tablesOf(header.migrations) })
  const { id, createdAt, database } = header
  const value = JSON.stringify({ backup: id, createdAt, restoredAt: toIso(clock.now()) })
  await target.insert('memory', ['key', 'value', 'updated_at'], [[restoredKey, value, clock.now()]])
  return { id, createdAt, database, rows }
}

type Reading = {
  target: BackupTarget
  file: string
  lines: AsyncGenerator<string, undefined>
  digest: Hash
  tables: readonly string[]
}

async function readTables({ target, file, lines, digest, tables }: Reading): Promise<number> {
  let current: { readonly table: string; readonly columns: readonly string[] } | undefined
  let waiting: BackupRow[] = []
  let rows = 0
  for await (const text of lines) {
    const line = parseLine(file, text)
    if ('sha256' in line) {
      await flush()
      if (line.rows !== rows || line.sha256 !== digest.digest('hex')) throw broken(file, 'it was changed or damaged')
      if (!(await lines.next()).done) throw broken(file, 'there is data after the last line')
      return rows
    }
    digest.update(`${text}\n`)
    if ('table' in line) {
      await flush()
      if (!tables.includes(line.table)) throw broken(file, `it contains an unknown table: ${line.table}`)
      current = line
      continue
    }
    if (line.length !== current?.columns.length) throw broken(file, 'a row has the wrong number of columns')
    if (isOldMark(current, line)) {
      rows++
      continue
    }
    waiting.push(line)
    rows++
    if (waiting.length >= rowsAtOnce) await flush()
  }
  throw broken(file, 'the end of the file is missing')

  async function flush(): Promise<void> {
    if (current && waiting.length > 0) {
      await target.insert(current.table, current.columns, waiting).catch((error: unknown) => {
        throw error instanceof GatewayError
          ? error
          : broken(file, `a row cannot be inserted into ${current?.table}`, error)
      })
    }
    waiting = []
  }
}

/** Skips the restore note of an earlier restore: only the current restore is recorded. */
function isOldMark({ table, columns }: { table: string; columns: readonly string[] }, row: BackupRow): boolean {
  return table === 'memory' && row[columns.indexOf('key')] === restoredKey
}

async function* readLines(file: string): AsyncGenerator<string, undefined> {
  let rest = ''
  // `readline` cannot be used: it also splits at characters such as U+2028, which JSON does not escape.
  for await (const chunk of readChunks(file)) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > longestLine) throw broken(file, 'a line is too long')
    yield* lines
  }
  if (rest !== '') throw broken(file, 'the end of the file is missing')
  return undefined
}

async function* readChunks(file: string): AsyncGenerator<string> {
  try {
    yield* createReadStream(file, { encoding: 'utf8', highWaterMark: 1 << 20 })
  } catch (error) {
    throw broken(file, toSystemReason(error))
  }
}

function parseHeader(file: string, line: string | undefined): z.infer<typeof Header> {
  try {
    return Header.parse(parseJson(line ?? ''))
  } catch (error) {
    throw broken(file, 'the first line is not a backup header', error)
  }
}

function parseLine(file: string, text: string): z.infer<typeof Line> {
  try {
    return Line.parse(parseJson(text))
  } catch (error) {
    throw broken(file, 'it was changed or damaged', error)
  }
}

function broken(file: string, reason: string, cause?: unknown): GatewayError {
  return new GatewayError('backup-invalid', `${file} is not a complete backup: ${reason}`, { file }, { cause })
}
