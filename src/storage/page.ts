import type { z } from 'zod'
import { GatewayError } from '../contract/errors.ts'

export type Page<Item> = { readonly items: Item[]; readonly next?: string }

const mostItems = 1000

/** Callers read one row more than the limit, to see whether there is a next page. */
export function toPageLimit(limit: number): number {
  return Math.max(1, Math.min(mostItems, Math.floor(limit)))
}

export function toPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
  toKey: (row: Row) => readonly (string | number)[],
): Page<Item> {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return { items: shown.map(toItem), next: last && toCursor(toKey(last)) }
}

/** Encodes the key of the last row on a page, so that rows added later do not shift the next page. */
export function toCursor(key: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url')
}

export function parseCursor<Key>(cursor: string, shape: z.ZodType<Key>): Key {
  try {
    return shape.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')))
  } catch (error) {
    throw new GatewayError('request-invalid', 'The cursor is not valid for this list', {}, { cause: error })
  }
}
