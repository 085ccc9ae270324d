import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/lib/clock.ts'
import { writeBackup } from '../../src/storage/backup.ts'
import type { Tables } from '../../src/storage/database.ts'
import { openPostgresSource } from '../../src/storage/postgres/backup.ts'
import { openSqliteSource } from '../../src/storage/sqlite/backup.ts'
import { ada } from '../scenarios/approvals/stage.ts'
import { openEarlier } from './earlier-data.ts'
import { databases, ids, observe, type Row, temporaryFolder } from './support.ts'

/**
 * What happens to the rows of a table when the user or agent they belong to is removed. `history` stays and gives no access;
 * `expired` is deleted by the next sweep; `none` belong to nobody. The compiler demands a line for every table.
 */
const removal: Readonly<Record<keyof Tables, 'removed' | 'expired' | 'history' | 'none'>> = {
  instances: 'none',
  calls: 'history',
  audit: 'history',
  tokens: 'history',
  users: 'history',
  sign_ins: 'removed',
  agents: 'history',
  sessions: 'history',
  children: 'none',
  memory: 'none',
  batches: 'none',
  documents: 'none',
  config_changes: 'none',
  results: 'expired',
  result_parts: 'removed',
  idempotency: 'removed',
  secrets: 'removed',
  secret_keys: 'none',
  pins: 'removed',
  server_entries: 'removed',
  tool_names: 'removed',
  approvals: 'history',
  grants: 'history',
  deliveries: 'history',
}
const tables = Object.keys(removal)

describe.each(databases)('every table on %s', (kind) => {
  it('is in a backup', async () => {
    const { place } = await openEarlier(kind)
    const source =
      place.databaseUrl === undefined ? openSqliteSource(place.folder) : await openPostgresSource(place.databaseUrl)
    const file = join(temporaryFolder(), 'backup')
    await writeBackup({ source, file, clock: systemClock, ids })
    await source.close()
    const named = (await readFile(file, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('{"table"'))
      .map((line) => z.object({ table: z.string() }).parse(JSON.parse(line)).table)
    expect(named.toSorted()).toEqual(tables.toSorted())
  })

  it('keeps nothing of a removed user but history', async () => {
    const gateway = await openEarlier(kind)
    const { all } = observe(gateway.place)
    const mentions = async () => {
      const found = new Map<string, Row[]>()
      for (const table of tables) found.set(table, (await all(`select * from ${table}`)).filter(isOfMia))
      return tables.filter((table) => found.get(table)?.length)
    }
    const [user] = await all("select id from users where name = 'mia'")
    const [agent] = await all("select id from agents where name = 'helper'")
    const theirs = [user?.id, agent?.id].map(String)
    const isOfMia = (row: Row) => Object.values(row).some((value) => theirs.some((id) => String(value).includes(id)))
    const before = await mentions()
    expect(before).toEqual(expect.arrayContaining(['tokens', 'secrets', 'idempotency', 'results']))
    await gateway.removal.remove(ada, 'user', 'mia')
    const after = await mentions()
    const stays: readonly string[] = ['history', 'expired']
    expect(Object.entries(removal).filter(([table, what]) => after.includes(table) && !stays.includes(what))).toEqual(
      [],
    )
  })
})
