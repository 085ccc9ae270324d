import type { MessagePort } from 'node:worker_threads'
import { GatewayError } from '../../contract/errors.ts'
import { toSystemReason } from '../../contract/system-error.ts'
import { createBatches } from './batch.ts'
import { compact } from './compact.ts'
import { createEntries } from './entries.ts'
import { openSqliteFile } from './file.ts'
import { packOutcomes, type SqliteReply, type SqliteRequest, type SqliteSettings, unpackUnits } from './protocol.ts'

/** The thread that owns the file: nothing else in this gateway opens it. */
export function serveSqlite(port: Pick<MessagePort, 'on' | 'postMessage' | 'close'>, settings: SqliteSettings): void {
  const reply = (message: SqliteReply) => port.postMessage(message)
  try {
    const file = openSqliteFile(settings)
    const { connection } = file
    const entries = createEntries({ connection, instance: settings.instance, key: settings.auditKey })
    const batches = createBatches(connection, entries)
    port.on('message', (request: SqliteRequest) => {
      if (request.kind === 'close') {
        file.close()
        port.close()
        return
      }
      try {
        if (request.kind === 'query') {
          return reply({ kind: 'rows', id: request.id, rows: batches.query(request.statement) })
        }
        if (request.kind === 'compact') {
          return reply({ kind: 'compacted', id: request.id, step: compact(connection, settings.folder, request.how) })
        }
        const outcomes = batches.run(unpackUnits(request.units))
        reply({ kind: 'ran', id: request.id, outcomes: packOutcomes(outcomes) })
      } catch (error) {
        reply({ kind: 'failed', id: request.id, message: toMessage(error) })
      }
    })
    reply({ kind: 'opened' })
  } catch (error) {
    if (error instanceof GatewayError) return reply({ kind: 'not-opened', code: error.code, message: error.message })
    const message = `The database in ${settings.folder} cannot be opened: ${toSystemReason(error)}`
    reply({ kind: 'not-opened', code: 'storage-unavailable', message })
  }
}

function toMessage(error: unknown): string {
  return error instanceof GatewayError ? error.message : toSystemReason(error)
}
