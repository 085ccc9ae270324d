import type { ConfigStore } from '../config/config.ts'
import { type AuditKeys, assertSameAuditKey } from '../storage/audit-key.ts'
import type { Storage } from '../storage/storage.ts'

type JoinParts = {
  readonly config: ConfigStore
  readonly storage: Storage
  readonly auditKeys: AuditKeys
  readonly fileIsNew: boolean
}

/** Gateways on one database have one configuration, and one key for the record. */
export async function joinOthers({ config, storage, auditKeys, fileIsNew }: JoinParts): Promise<void> {
  if (storage.kind === 'sqlite') return
  await assertSameAuditKey(storage.documents, auditKeys)
  await config.share({
    documents: storage.documents,
    announce: () => storage.changes.announce('config'),
    onChange: (listener) => storage.changes.on('config', listener),
    fileIsNew,
  })
}
