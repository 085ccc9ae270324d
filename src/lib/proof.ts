import { createHmac, hash, timingSafeEqual } from 'node:crypto'

/** A challenge is 32 random bytes as base64url. */
export const challengeForm = /^[A-Za-z0-9_-]{43}$/

export type ProofParts = {
  /** The SHA-256 of the administrator's token. */
  readonly digest: Buffer
  /** The address that the gateway listens at. It is part of the proof, so that the proof is not valid at another address. */
  readonly url: string
  readonly challenge: string
}

/** Proves that a gateway knows the token of its data folder, without sending the token in either direction. */
export function toProof({ digest, url, challenge }: ProofParts): string {
  return createHmac('sha256', digest).update(`sallyport gateway proof\n${url}\n${challenge}`).digest('base64url')
}

export function isProof(
  given: string,
  { token, url, challenge }: { token: string; url: string; challenge: string },
): boolean {
  const expected = Buffer.from(toProof({ digest: hash('sha256', token, 'buffer'), url, challenge }))
  const found = Buffer.from(given)
  return found.length === expected.length && timingSafeEqual(found, expected)
}
