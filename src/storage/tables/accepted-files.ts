import { createHash } from 'node:crypto'
import { z } from 'zod'
import { ScopeText } from '../../contract/api/base.ts'
import { ScopedServer } from '../../contract/config.ts'
import { GatewayError } from '../../contract/errors.ts'
import { parseJson } from '../../lib/json.ts'
import { type Database, toStatement } from '../database.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'
import { toNote } from './documents.ts'

/**
 * A file of servers whose content somebody has accepted. The stored servers are in effect, never the file itself: a later
 * change of the file changes nothing until somebody accepts it.
 */
export const AcceptedFile = z.object({
  /** The scope that gets the servers, such as `project:shop`. */
  scope: ScopeText,
  /** The folder as configured, and the path of the file in it. */
  folder: z.string(),
  file: z.string(),
  /** SHA-256 of the accepted bytes. */
  hash: z.string(),
  /** The accepted entries as they were shown, by name. The other entries of the file are not stored. */
  servers: z.record(z.string(), ScopedServer),
  by: z.string(),
  at: z.number(),
})
export type AcceptedFile = z.infer<typeof AcceptedFile>

export type AcceptedFileStore = {
  list(): Promise<AcceptedFile[]>
  /** Replaces the accepted content for the same scope, folder and file, together with the entry of the change. */
  accept(file: AcceptedFile, change: Change): Promise<void>
  /** Removes accepted contents, together with the entry of the change. */
  forget(files: readonly AcceptedFile[], change: Change): Promise<void>
}

type AcceptedFileParts = { readonly database: Database; readonly writer: Writer; now(): number }

const prefix = 'accepted-file:'

/** Accepted files are notes in the table `documents`. */
export function createAcceptedFileStore({ database, writer, now }: AcceptedFileParts): AcceptedFileStore {
  return {
    async list() {
      const rows = await database
        .selectFrom('documents')
        .select('body')
        .where('name', 'like', `${prefix}%`)
        .orderBy('name')
        .execute()
      return rows.map(({ body }) => AcceptedFile.parse(parseJson(body)))
    },
    async accept(file, change) {
      await commit([toNote(database, { name: nameOf(file), text: JSON.stringify(file) }, now())], change)
    },
    async forget(files, change) {
      const names = files.map(nameOf)
      await commit([toStatement(database.deleteFrom('documents').where('name', 'in', names))], change)
    },
  }

  async function commit(steps: Parameters<Writer['commit']>[0], change: Change): Promise<void> {
    const outcome = await writer.commit([...steps, { entry: toChangeEntry(change, now()) }])
    if (outcome.kind === 'refused') throw new GatewayError('storage-unavailable', outcome.reason)
  }
}

function nameOf({ scope, folder, file }: Pick<AcceptedFile, 'scope' | 'folder' | 'file'>): string {
  // A path may be longer than an index entry of PostgreSQL can be.
  return (
    prefix +
    createHash('sha256')
      .update(JSON.stringify([scope, folder, file]))
      .digest('hex')
  )
}
