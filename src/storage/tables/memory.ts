import { compiledOnce, type Database, type MemoryTable, toStatement } from '../database.ts'
import type { Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'

/** Small values that are kept between starts, such as which protocol worked for a server. */
export type Memory = {
  get(key: string): Promise<string | undefined>
  set(key: string, value: string): void
}

type MemoryParts = { database: Database; writer: Writer; now(): number }

export function createMemory({ database, writer, now }: MemoryParts): Memory {
  const upsert = compiledOnce(
    (row: MemoryTable) =>
      database
        .insertInto('memory')
        .values(row)
        .onConflict((conflict) =>
          conflict.column('key').doUpdateSet(({ ref }) => ({
            value: ref('excluded.value'),
            updated_at: ref('excluded.updated_at'),
          })),
        ),
    (row) => Object.values(row),
  )
  return {
    async get(key) {
      await writer.settled()
      const row = await database.selectFrom('memory').select('value').where('key', '=', key).executeTakeFirst()
      return row?.value
    },
    set: (key, value) => writer.attempt([upsert({ key, value, updated_at: now() })]),
  }
}

/** Writes and removes a row of 64 KB. It succeeds only if the database can be written and has space for a few calls. */
export function toProbe(database: Database, now: number): Unit {
  const key = 'storage-probe'
  return [
    toStatement(database.insertInto('memory').values({ key, value: ' '.repeat(65_536), updated_at: now }), 1),
    toStatement(database.deleteFrom('memory').where('key', '=', key), 1),
  ]
}
