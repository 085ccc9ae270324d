import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { NewEntry } from './unit.ts'

/** Creates the key object once: it is six times as fast as passing the bytes to each hash. */
export function toChainKey(key: Uint8Array): KeyObject {
  return createSecretKey(key)
}

/**
 * The keyed hash of an entry, over the hash of the entry before and all fields. The JSON list before the body marks its
 * own end, so that two different entries never give the same input.
 */
export function linkEntry(
  key: KeyObject,
  previous: string,
  entry: NewEntry & { readonly instance: string; readonly sequence: number },
): string {
  const { instance, sequence, at, kind, call, principal, subject, body } = entry
  const head = JSON.stringify([previous, instance, sequence, at, kind, call, principal, subject])
  return createHmac('sha256', key).update(head).update(body).digest('base64url')
}
