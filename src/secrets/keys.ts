import { GatewayError } from '../contract/errors.ts'
import { addKey, deriveKey, type KeyRing, saveKeys, toKeyCheck } from '../storage/key.ts'
import type { SecretStore, StoredSecret } from '../storage/tables/secrets.ts'
import { decrypt, encrypt } from './cipher.ts'

/** The keys of secrets by version. New values are encrypted with the newest key. */
export type SecretKeys = { readonly newest: number; readonly byVersion: ReadonlyMap<number, Buffer> }

type KeyStore = Pick<SecretStore, 'keys' | 'addKey'>

/** Finds the version of each key. Throws if no key fits the database, before anything is written with a wrong key. */
export async function identifyKeys(ring: KeyRing, store: KeyStore): Promise<SecretKeys> {
  const known = await store.keys()
  const [first] = ring.keys
  const last = known.at(-1)
  if (!first) throw new GatewayError('key-invalid', 'No encryption key is configured')
  const checks = ring.keys.map((key) => ({ key, proof: toKeyCheck(key) }))
  const found = known.flatMap(({ version, proof }) => {
    const match = checks.find((candidate) => candidate.proof === proof)
    return match ? [[version, deriveKey(match.key, 'secrets')] as const] : []
  })
  const byVersion = new Map(found)
  if (last && !byVersion.has(last.version)) throw wrongKey(ring)
  const proof = toKeyCheck(first)
  if (known.some((key) => key.proof === proof)) return { newest: last?.version ?? 1, byVersion }
  // A new key before the key in use means that a rotation has begun.
  const version = (last?.version ?? 0) + 1
  if (!(await store.addKey({ version, proof }))) return identifyKeys(ring, store)
  return { newest: version, byVersion: byVersion.set(version, deriveKey(first, 'secrets')) }
}

function wrongKey({ file }: KeyRing): GatewayError {
  const place = file === undefined ? '`SALLYPORT_KEY`' : `The key in ${file}`
  return new GatewayError('key-wrong', `${place} is not the key that encrypts the secrets in this database`)
}

type Reencryption = { readonly store: SecretStore; readonly keys: SecretKeys }

/**
 * Re-encrypts row by row, with one commit per row. If it is interrupted, each row still has exactly one key version,
 * and the next start or rotation continues with the rows that are left.
 */
export async function reencryptAll({ store, keys }: Reencryption): Promise<number> {
  const rows = (await store.all()).filter(({ keyVersion }) => keyVersion !== keys.newest)
  let done = 0
  for (const row of rows) if (await reencrypt(row, { store, keys })) done++
  return done
}

async function reencrypt(row: StoredSecret, { store, keys }: Reencryption): Promise<boolean> {
  const [before, after] = [keys.byVersion.get(row.keyVersion), keys.byVersion.get(keys.newest)]
  const value = before && decrypt(before, row, row.ciphertext)
  if (!value || !after) return false
  const place = { ...row, keyVersion: keys.newest }
  return store.reencrypt(row, { keyVersion: keys.newest, ciphertext: encrypt(after, place, value.reveal()) })
}

/** First step of a rotation: writes the new key to the key file, so that every later start knows the key. */
export async function beginRotation(ring: KeyRing): Promise<KeyRing> {
  const { file, keys } = ring
  if (file === undefined) {
    const steps =
      'Set SALLYPORT_KEY_PREVIOUS to the current key and SALLYPORT_KEY to a new key, then restart the gateway'
    throw new GatewayError('request-invalid', `The key is set in the environment. ${steps}`)
  }
  const fresh = await addKey(file, keys)
  return { file, keys: [fresh, ...keys] }
}

/** Last step of a rotation: removes keys from the key file that no secret is encrypted with. */
export async function endRotation(ring: KeyRing, store: SecretStore, keys: SecretKeys): Promise<KeyRing> {
  const [newest] = ring.keys
  if (ring.file === undefined || ring.keys.length < 2 || !newest) return ring
  const left = (await store.all()).some(({ keyVersion }) => keyVersion !== keys.newest)
  if (left) return ring
  await saveKeys(ring.file, [newest])
  return { file: ring.file, keys: [newest] }
}
