import type { ConfigStore } from '../config/config.ts'
import type { Storage } from '../storage/storage.ts'

/** Where several gateways have one database, they have one configuration too. */
export async function shareConfig(config: ConfigStore, storage: Storage, fileIsNew: boolean): Promise<void> {
  if (storage.kind === 'sqlite') return
  await config.share({
    documents: storage.documents,
    announce: () => storage.changes.announce('config'),
    onChange: (listener) => storage.changes.on('config', listener),
    fileIsNew,
  })
}
