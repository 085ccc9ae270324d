import { randomBytes } from 'node:crypto'

/** Code takes its ids from `Ids`, so that a test can predict them. */
export type Ids = {
  /** A short sortable id with a prefix that names its kind: `call_01k…`. */
  next(prefix: string): string
  /** Unguessable text for tokens and session ids. */
  secret(bytes: number): string
}

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

export function createIds(now: () => number = Date.now): Ids {
  let pool = randomBytes(4096)
  let used = 0
  const take = (count: number): Buffer => {
    if (used + count > pool.length) {
      pool = randomBytes(4096)
      used = 0
    }
    used += count
    return pool.subarray(used - count, used)
  }
  return {
    next(prefix) {
      let text = ''
      for (const byte of take(10)) text += alphabet[byte & 31]
      return `${prefix}_${timePart(now())}${text}`
    },
    secret: (bytes) => randomBytes(bytes).toString('base64url'),
  }
}

/** A lower bound for ids: ids of this prefix sort before it if they were made before the time, otherwise after it. */
export function toIdFloor(prefix: string, milliseconds: number): string {
  return `${prefix}_${timePart(Math.max(0, milliseconds))}`
}

/** Nine characters of base 32. They sort by time until the year 3084. */
function timePart(milliseconds: number): string {
  let rest = milliseconds
  let text = ''
  for (let place = 0; place < 9; place++) {
    text = alphabet[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}
