import { randomBytes } from 'node:crypto'

/** Code takes its ids from `Ids`, so that a test can predict them. */
export type Ids = {
  /** A short id with a prefix that names its kind: `call_01k…`. Ids of one process sort in the order in which they were made. */
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
  let lastTime = Number.NaN
  let lastEnd = ''
  const random = (): string => {
    let text = ''
    for (const byte of take(10)) text += alphabet[byte & 31]
    return text
  }
  return {
    next(prefix) {
      const time = now()
      lastEnd = (time === lastTime && following(lastEnd)) || random()
      lastTime = time
      return `${prefix}_${timePart(time)}${lastEnd}`
    },
    secret: (bytes) => randomBytes(bytes).toString('base64url'),
  }
}

/** The next text of the same length in the order of the alphabet; undefined after the last one. */
function following(text: string): string | undefined {
  let end = text.length - 1
  while (end >= 0 && text[end] === 'z') end--
  if (end < 0) return undefined
  const next = alphabet[alphabet.indexOf(text.charAt(end)) + 1]
  return `${text.slice(0, end)}${next}${'0'.repeat(text.length - 1 - end)}`
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
