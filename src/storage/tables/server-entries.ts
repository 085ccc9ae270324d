import { compiledOnce, type Database, type ServerEntriesTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'
import type { Writer } from '../writer.ts'

/** A server entry of the configuration. `scope` contains the id of a user instead of the name, because names are reused. */
export type StoredServerEntry = {
  readonly scope: string
  readonly name: string
  /** Keyed digest of the entry. */
  readonly mark: string
  readonly createdAt: number
  readonly updatedAt: number
}

export type ServerEntryStore = {
  all(): Promise<StoredServerEntry[]>
  /** Stores new and changed entries and removes others, in one unit. An entry that another instance added first stays. */
  write(changed: readonly StoredServerEntry[], removed: readonly StoredServerEntry[]): Promise<void>
  /** A step of a removal: removes the entries of these scopes. */
  removeAll(scopes: readonly string[]): Statement
}

type ServerEntryStoreParts = { database: Database; writer: Writer }

export function createServerEntryStore({ database, writer }: ServerEntryStoreParts): ServerEntryStore {
  const put = compiledOnce(
    (row: ServerEntriesTable) =>
      database
        .insertInto('server_entries')
        .values(row)
        .onConflict((conflict) =>
          conflict
            .columns(['scope', 'name'])
            .doUpdateSet(({ ref }) => ({ mark: ref('excluded.mark'), updated_at: ref('excluded.updated_at') }))
            // Several instances see the same change, each at another moment: the first one writes it.
            .whereRef('server_entries.mark', '!=', 'excluded.mark'),
        ),
    (row) => Object.values(row),
  )
  const remove = ({ scope, name, mark }: StoredServerEntry) =>
    toStatement(
      database
        .deleteFrom('server_entries')
        .where('scope', '=', scope)
        .where('name', '=', name)
        .where('mark', '=', mark),
    )

  return {
    async all() {
      await writer.settled()
      const rows = await database.selectFrom('server_entries').selectAll().execute()
      return rows.map(({ scope, name, mark, created_at, updated_at }) => ({
        scope,
        name,
        mark,
        createdAt: Number(created_at),
        updatedAt: Number(updated_at),
      }))
    },
    async write(changed, removed) {
      const rows = changed.map(({ scope, name, mark, createdAt, updatedAt }) =>
        put({ scope, name, mark, created_at: createdAt, updated_at: updatedAt }),
      )
      const outcome = await writer.commit([...removed.map(remove), ...rows])
      if (outcome.kind === 'refused') throw new Error(`The server entries were not stored: ${outcome.reason}`)
    },
    removeAll: (scopes) => toStatement(database.deleteFrom('server_entries').where('scope', 'in', [...scopes, ''])),
  }
}
