import { hash } from 'node:crypto'
import type { Ids } from '../lib/ids.ts'

/** A new token with its text. Later only the digest is known. */
export type FreshToken = { readonly id: string; readonly text: string; readonly digest: Buffer }

const form = /^sp_([0-9a-z]{10})_[A-Za-z0-9_-]{43}$/

export function createTokenText(ids: Ids): FreshToken {
  const id = ids.next('token').slice(-10)
  const text = `sp_${id}_${ids.secret(32)}`
  return { id, text, digest: toDigest(text) }
}

/** The id in a token text; undefined if the text does not have the format of a token. */
export function findTokenId(text: string): string | undefined {
  return form.exec(text)?.[1]
}

/** No slow hash is needed, because 32 random bytes cannot be guessed. */
export function toDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

export function toTokenPrefix(id: string): string {
  return `sp_${id}`
}
