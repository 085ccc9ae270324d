import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { percentile } from '../lib/statistics.ts'

export type Commits = { readonly p50: number; readonly p99: number }

/** Time of the disk for one durable row, which is the minimum for a writing call. */
export function measureCommits(folder: string, milliseconds: number): Commits {
  const database = new Sqlite(join(folder, 'commits.db'))
  try {
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = FULL')
    database.exec('create table if not exists entries (id integer primary key, body text not null)')
    const insert = database.prepare('insert into entries (body) values (?)')
    const body = 'x'.repeat(300)
    const taken: number[] = []
    const end = performance.now() + milliseconds
    do {
      const started = performance.now()
      insert.run(body)
      taken.push(performance.now() - started)
    } while (performance.now() < end)
    const sorted = taken.toSorted((a, b) => a - b)
    return { p50: percentile(sorted, 50), p99: percentile(sorted, 99) }
  } finally {
    database.close()
  }
}
