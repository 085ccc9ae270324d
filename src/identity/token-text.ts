import { hash } from 'node:crypto'
import type { Ids } from '../lib/ids.ts'

/** A token in the one moment at which its text is known; afterwards there is only the digest. */
export type FreshToken = { readonly id: string; readonly text: string; readonly digest: Buffer }

const form = /^sp_([0-9a-z]{10})_[A-Za-z0-9_-]{43}$/

export function createTokenText(ids: Ids): FreshToken {
  const id = ids.next('token').slice(-10)
  const text = `sp_${id}_${ids.secret(32)}`
  return { id, text, digest: toDigest(text) }
}

/** The id that a text names, if it has the form of a token at all. */
export function findTokenId(text: string): string | undefined {
  return form.exec(text)?.[1]
}

/** 32 random bytes need no slow hash: there is nothing to guess. */
export function toDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

export function toTokenPrefix(id: string): string {
  return `sp_${id}`
}
