import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type SecretValue, secret } from '../lib/secret.ts'

/** The row, scope, name and key version that a ciphertext is bound to. Decryption fails for any other place. */
export type Place = {
  readonly id: string
  readonly scope: string
  readonly name: string
  readonly keyVersion: number
}

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

export function encrypt(key: Buffer, place: Place, value: string): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce)
  cipher.setAAD(toBytes(place))
  const sealed = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64')
}

/** Undefined if the ciphertext was not encrypted with this key for this place. */
export function decrypt(key: Buffer, place: Place, ciphertext: string): SecretValue | undefined {
  const bytes = Buffer.from(ciphertext, 'base64')
  if (bytes.length < nonceBytes + tagBytes) return undefined
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decipher.setAAD(toBytes(place))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    const sealed = bytes.subarray(nonceBytes, -tagBytes)
    return secret(Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8'))
  } catch {
    return undefined
  }
}

/** JSON keeps the parts separate, whatever characters they contain. */
function toBytes({ id, scope, name, keyVersion }: Place): Buffer {
  return Buffer.from(JSON.stringify([id, scope, name, keyVersion]))
}
