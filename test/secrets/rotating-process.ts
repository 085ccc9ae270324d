/** Rotates the key again and again, says how far it is, and waits to be killed. */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/lib/clock.ts'
import { createIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createMasking } from '../../src/masking/masking.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { openStorage } from '../../src/storage/storage.ts'

const [folder = ''] = process.argv.slice(2)
const parts = { folder, clock: systemClock, ids: createIds(), log: silentLog }
const storage = await openStorage(parts)
const secrets = await createSecrets({
  ...parts,
  storage,
  config: { resolve: (definition) => definition },
  masking: createMasking(),
  environment: {},
  owners: { findUserId: () => undefined, ownsProject: () => false, ownerOf: () => undefined, trusts: () => true },
  onChange() {},
})
writeSync(1, 'ready\n')
for (;;) {
  const { keyVersion } = await secrets.rotateKey({ kind: 'user', name: 'root', role: 'administrator' })
  writeSync(1, `version ${keyVersion}\n`)
}
