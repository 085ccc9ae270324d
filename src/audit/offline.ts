import { existsSync } from 'node:fs'
import type { AuditReport } from '../contract/audit.ts'
import { GatewayError } from '../contract/errors.ts'
import { findAuditKeys } from '../storage/audit-key.ts'
import { toChainKey } from '../storage/chain.ts'
import { openOfflineRecord } from '../storage/sqlite/offline.ts'
import { toAnchorFile } from './anchors.ts'
import { createDatabaseSource } from './database-source.ts'
import { createFileSource } from './file-source.ts'
import { readAnchors } from './lines.ts'
import { verifyRecord } from './verify.ts'

export type StoppedRecord = {
  /** The data folder. */
  readonly folder: string
  /** Additional anchor files. The one in the data folder is always read. */
  readonly anchors: readonly string[]
  /** Milliseconds since 1970. Default: the clock of this machine. */
  readonly now?: number
  readonly signal: AbortSignal
}

/** Verifies the audit of a stopped gateway, read from its data folder. */
export async function verifyStopped({
  folder,
  anchors,
  now = Date.now(),
  signal,
}: StoppedRecord): Promise<AuditReport> {
  demandFiles(anchors)
  const offline = openOfflineRecord(folder)
  try {
    const keys = (await findAuditKeys({ folder, environment: process.env })) ?? []
    return await verifyRecord({
      source: createDatabaseSource(offline.record, () => offline.remembered('restored')),
      keys: keys.map(toChainKey),
      outside: readAnchors([toAnchorFile(folder), ...anchors]),
      apart: anchors.length > 0,
      now,
      signal,
    })
  } finally {
    offline.close()
  }
}

/** Verifies an export. Uses the key and the anchors of the data folder if one is given. */
export async function verifyFile(
  file: string,
  {
    folder,
    anchors,
    now = Date.now(),
    signal,
  }: Omit<StoppedRecord, 'folder'> & { readonly folder: string | undefined },
): Promise<AuditReport> {
  demandFiles(anchors)
  const keys = (await findAuditKeys({ folder: folder ?? '', environment: process.env })) ?? []
  return verifyRecord({
    source: createFileSource(file),
    keys: keys.map(toChainKey),
    outside: readAnchors([...(folder === undefined ? [] : [toAnchorFile(folder)]), ...anchors]),
    apart: anchors.length > 0,
    now,
    signal,
  })
}

/** A report must not claim a comparison with outside anchors if the given file is missing. */
function demandFiles(anchors: readonly string[]): void {
  const missing = anchors.find((file) => !existsSync(file))
  if (missing !== undefined)
    throw new GatewayError('request-invalid', `${missing} cannot be read: it does not exist`, { file: missing })
}
