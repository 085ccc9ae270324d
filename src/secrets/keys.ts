import { GatewayError } from '../contract/errors.ts'
import { addKey, deriveKey, type KeyRing, saveKeys, toKeyCheck } from '../storage/key.ts'
import type { SecretStore, StoredSecret } from '../storage/tables/secrets.ts'
import { decrypt, encrypt } from './cipher.ts'

/** The keys of secrets by version; new values are encrypted under the newest. */
export type SecretKeys = { readonly newest: number; readonly byVersion: ReadonlyMap<number, Buffer> }

type KeyStore = Pick<SecretStore, 'keys' | 'addKey'>

/** Finds out which version each key is. A key that fits nothing refuses, before it could write anything. */
export async function recogniseKeys(ring: KeyRing, store: KeyStore): Promise<SecretKeys> {
  const known = await store.keys()
  const [first] = ring.keys
  const last = known.at(-1)
  if (!first) throw new GatewayError('key-invalid', 'There is no key')
  const checks = ring.keys.map((key) => ({ key, proof: toKeyCheck(key) }))
  const found = known.flatMap(({ version, proof }) => {
    const match = checks.find((candidate) => candidate.proof === proof)
    return match ? [[version, deriveKey(match.key, 'secrets')] as const] : []
  })
  const byVersion = new Map(found)
  if (last && !byVersion.has(last.version)) throw wrongKey(ring)
  const proof = toKeyCheck(first)
  if (known.some((key) => key.proof === proof)) return { newest: last?.version ?? 1, byVersion }
  // A key that nobody has used yet, in front of the one in use: a rotation that was begun.
  const version = (last?.version ?? 0) + 1
  if (!(await store.addKey({ version, proof }))) return recogniseKeys(ring, store)
  return { newest: version, byVersion: byVersion.set(version, deriveKey(first, 'secrets')) }
}

function wrongKey({ file }: KeyRing): GatewayError {
  const place = file === undefined ? '`SALLYPORT_KEY`' : `The key in ${file}`
  return new GatewayError('key-wrong', `${place} is not the one that the secrets in this database are encrypted under`)
}

type Recryption = { readonly store: SecretStore; readonly keys: SecretKeys }

/**
 * Row by row, each in a commit of its own. Whenever it ends, every row opens under exactly one version: the next
 * start, or the next rotation, goes on with what is left.
 */
export async function recryptAll({ store, keys }: Recryption): Promise<number> {
  const rows = (await store.all()).filter(({ keyVersion }) => keyVersion !== keys.newest)
  let done = 0
  for (const row of rows) if (await recrypt(row, { store, keys })) done++
  return done
}

async function recrypt(row: StoredSecret, { store, keys }: Recryption): Promise<boolean> {
  const [before, after] = [keys.byVersion.get(row.keyVersion), keys.byVersion.get(keys.newest)]
  const value = before && decrypt(before, row, row.ciphertext)
  if (!value || !after) return false
  const place = { ...row, keyVersion: keys.newest }
  return store.recrypt(row, { keyVersion: keys.newest, ciphertext: encrypt(after, place, value.reveal()) })
}

/** The first step of a rotation: once the file has the new key, every later start knows of it. */
export async function beginRotation(ring: KeyRing): Promise<KeyRing> {
  const { file, keys } = ring
  if (file === undefined) {
    const steps =
      'Set SALLYPORT_KEY_PREVIOUS to the key in use and SALLYPORT_KEY to a new one, then start the gateway anew'
    throw new GatewayError('request-invalid', `The key comes by the environment. ${steps}`)
  }
  const fresh = await addKey(file, keys)
  return { file, keys: [fresh, ...keys] }
}

/** The last step: what nothing is encrypted under any more is forgotten, in the file as well. */
export async function endRotation(ring: KeyRing, store: SecretStore, keys: SecretKeys): Promise<KeyRing> {
  const [newest] = ring.keys
  if (ring.file === undefined || ring.keys.length < 2 || !newest) return ring
  const left = (await store.all()).some(({ keyVersion }) => keyVersion !== keys.newest)
  if (left) return ring
  await saveKeys(ring.file, [newest])
  return { file: ring.file, keys: [newest] }
}
