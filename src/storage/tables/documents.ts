import { type Database, type DocumentsTable, toStatement } from '../database.ts'
import type { Statement, Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'

/** A text that all gateways on this database share. */
export type StoredDocument = {
  readonly name: string
  /** The format of the text, such as `yaml`. */
  readonly format: string
  readonly text: string
  /** Increases by one with every change. */
  readonly version: number
}

export type DocumentStore = {
  find(name: string): Promise<StoredDocument | undefined>
  /** Several documents and notes in one statement, so that they are of the same moment. */
  findAll(names: readonly string[]): Promise<ReadonlyMap<string, StoredDocument>>
  /**
   * Replaces the version that the document was made from; version 0 creates a document. Writes `notes` and `steps` in
   * the same commit. Returns false, and writes nothing, if the version has changed or a step is refused.
   */
  replace(document: StoredDocument, beside?: { notes?: readonly StoredNote[]; steps?: Unit }): Promise<boolean>
}

export type StoredNote = { readonly name: string; readonly text: string }

type DocumentStoreParts = { database: Database; writer: Writer; now(): number }

export function createDocumentStore({ database, writer, now }: DocumentStoreParts): DocumentStore {
  return {
    async find(name) {
      const row = await database.selectFrom('documents').selectAll().where('name', '=', name).executeTakeFirst()
      return row && toDocument(row)
    },
    async findAll(names) {
      const rows = await database.selectFrom('documents').selectAll().where('name', 'in', names).execute()
      return new Map(rows.map((row) => [row.name, toDocument(row)]))
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

function toDocument({ name, format, body, version }: DocumentsTable): StoredDocument {
  return { name, format, text: body, version }
}

/** Writes a note. An existing note of this name is replaced. */
export function toNote(database: Database, { name, text }: StoredNote, at: number): Statement {
  const rest = { version: 1, format: 'note', body: text, updated_at: at }
  return toStatement(
    database
      .insertInto('documents')
      .values({ name, ...rest })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(rest)),
  )
}
