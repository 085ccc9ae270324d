import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import { Password } from '../contract/user.ts'

export type Passwords = {
  /** Throws `request-invalid` for one that is too short. */
  hash(password: string): Promise<string>
  /** Without a stored one it takes as long and is wrong: whether a name exists cannot be told by the time. */
  verify(password: string, stored: string | undefined): Promise<boolean>
}

export type PasswordCost = { readonly logN: number; readonly r: number; readonly p: number }

/** 32 MB and about a quarter of a second each. */
export const usualCost: PasswordCost = { logN: 15, r: 8, p: 3 }

const keyBytes = 32
const saltBytes = 16
/** Each one holds its memory and a thread of a pool that the disk uses too. */
const atOnce = 2
const mostWaiting = 32

export function createPasswords(cost: PasswordCost = usualCost): Passwords {
  let running = 0
  const waiting: (() => void)[] = []
  const decoy = format(cost, randomBytes(saltBytes), randomBytes(keyBytes))

  async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (running >= atOnce) {
      if (waiting.length >= mostWaiting)
        throw new GatewayError('limit-exceeded', 'Too many are signing in at once', { retryAfter: 5 })
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else running += 1
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
  }

  return {
    hash(password) {
      checkPassword(password)
      const salt = randomBytes(saltBytes)
      return inTurn(async () => format(cost, salt, await derive(password, salt, cost)))
    },
    verify(password, stored) {
      const { salt, key, ...by } = parse(stored ?? decoy)
      return inTurn(async () => {
        const same = timingSafeEqual(await derive(password, salt, by), key)
        return same && stored !== undefined
      })
    },
  }
}

export function checkPassword(password: string): void {
  const parsed = Password.safeParse(password)
  if (parsed.success) return
  throw new GatewayError('request-invalid', `The password ${parsed.error.issues[0]?.message ?? 'cannot be used'}`)
}

function derive(password: string, salt: Buffer, { logN, r, p }: PasswordCost): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const options = { N: 2 ** logN, r, p, maxmem: 256 * 2 ** logN * r }
  // The same letters can be written in several ways, and keyboards differ.
  scrypt(password.normalize('NFKC'), salt, keyBytes, options, (error, key) => (error ? reject(error) : resolve(key)))
  return promise
}

function format({ logN, r, p }: PasswordCost, salt: Buffer, key: Buffer): string {
  return ['scrypt', logN, r, p, salt.toString('base64url'), key.toString('base64url')].join('$')
}

function parse(stored: string): PasswordCost & { salt: Buffer; key: Buffer } {
  const match = /^scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(stored)
  if (!match) throw new Error('A stored password does not have the form that this version writes')
  const [, logN, r, p, salt = '', key = ''] = match
  const bytes = { salt: Buffer.from(salt, 'base64url'), key: Buffer.from(key, 'base64url') }
  return { logN: Number(logN), r: Number(r), p: Number(p), ...bytes }
}
