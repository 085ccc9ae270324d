import { compiledOnce, type Database, type ToolNamesTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

/** A public name and the tool or prompt that it belongs to. */
export type StoredName = {
  readonly space: string
  readonly name: string
  readonly server: string
  /** The name that the server uses. */
  readonly tool: string
  readonly assignedAt: number
}

export type ToolNameStore = {
  all(): Promise<StoredName[]>
  /**
   * Stores names in one unit. A name that another instance stored first stays with its tool. `taken` are names that are
   * taken from removed servers; `refused` if another instance changed one of them.
   */
  assign(names: readonly StoredName[], taken: readonly StoredName[], change: Change): Promise<'done' | 'refused'>
  /** Removes names of spaces that do not exist any more. */
  forget(spaces: readonly string[]): Promise<void>
  /** A step of a removal: removes the names of these spaces. */
  removeAll(spaces: readonly string[]): Statement
}

type ToolNameStoreParts = { database: Database; writer: Writer; now(): number }

export function createToolNameStore({ database, writer, now }: ToolNameStoreParts): ToolNameStore {
  const insert = compiledOnce(
    (row: ToolNamesTable) =>
      database
        .insertInto('tool_names')
        .values(row)
        .onConflict((conflict) => conflict.columns(['space', 'name']).doNothing()),
    (row) => Object.values(row),
  )
  const remove = ({ space, name, server, tool }: StoredName) => {
    const row = database.deleteFrom('tool_names').where('space', '=', space).where('name', '=', name)
    return toStatement(row.where('server', '=', server).where('tool', '=', tool), 1)
  }
  const removeAll = (spaces: readonly string[]) =>
    toStatement(database.deleteFrom('tool_names').where('space', 'in', [...spaces, '']))

  return {
    async all() {
      await writer.settled()
      const rows = await database.selectFrom('tool_names').selectAll().execute()
      return rows.map(({ space, name, server, tool, assigned_at }) => {
        return { space, name, server, tool, assignedAt: Number(assigned_at) }
      })
    },
    async assign(names, taken, change) {
      const rows = names.map(({ space, name, server, tool, assignedAt }) =>
        insert({ space, name, server, tool, assigned_at: assignedAt }),
      )
      // Names of listed tools follow from the list. Taking a name from another tool is a change of its own.
      const entries = taken.length > 0 ? [{ entry: toChangeEntry(change, now()) }] : []
      const outcome = await writer.commit([...taken.map(remove), ...rows, ...entries])
      if (outcome.kind === 'done') return 'done'
      if (outcome.by === 'error') throw new Error(`The names were not stored: ${outcome.reason}`)
      return 'refused'
    },
    async forget(spaces) {
      await writer.commit([removeAll(spaces)])
    },
    removeAll,
  }
}
