import { type Database, type DocumentsTable, toStatement } from '../database.ts'
import type { Statement, Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'

/** Text that all gateways on this database share. */
export type StoredDocument = {
  readonly name: string
  /** What the text is written in, such as `yaml`. */
  readonly format: string
  readonly text: string
  /** Counts up with every change. */
  readonly version: number
}

export type DocumentStore = {
  find(name: string): Promise<StoredDocument | undefined>
  /**
   * One step from the version that it was made from to the next; a new one is made from version 0. In the same commit
   * `notes` are kept, whatever they said before, and `steps` are done. `false` when somebody else was first, or one of
   * the steps is refused: then nothing is changed.
   */
  replace(document: StoredDocument, beside?: { notes?: readonly StoredNote[]; steps?: Unit }): Promise<boolean>
}

export type StoredNote = { readonly name: string; readonly text: string }

type DocumentStoreParts = { database: Database; writer: Writer; now(): number }

export function createDocumentStore({ database, writer, now }: DocumentStoreParts): DocumentStore {
  return {
    async find(name) {
      const row = await database.selectFrom('documents').selectAll().where('name', '=', name).executeTakeFirst()
      return row && { name: row.name, format: row.format, text: row.body, version: row.version }
    },
    async replace(document, { notes = [], steps = [] } = {}) {
      const outcome = await writer.commit([
        document.version === 0 ? insert(document) : update(document),
        ...notes.map((note) => toNote(database, note, now())),
        ...steps,
      ])
      return outcome.kind === 'done'
    },
  }

  function insert({ name, format, text }: StoredDocument): Statement {
    const row: DocumentsTable = { name, version: 1, format, body: text, updated_at: now() }
    return toStatement(
      database
        .insertInto('documents')
        .values(row)
        .onConflict((conflict) => conflict.column('name').doNothing()),
      1,
    )
  }

  function update({ name, format, text, version }: StoredDocument): Statement {
    const changed = { version: version + 1, format, body: text, updated_at: now() }
    return toStatement(
      database.updateTable('documents').set(changed).where('name', '=', name).where('version', '=', version),
      1,
    )
  }
}

/** A note is kept whatever it said before. */
export function toNote(database: Database, { name, text }: StoredNote, at: number): Statement {
  const rest = { version: 1, format: 'note', body: text, updated_at: at }
  return toStatement(
    database
      .insertInto('documents')
      .values({ name, ...rest })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(rest)),
  )
}
