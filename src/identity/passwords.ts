import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import { Password } from '../contract/user.ts'

export type Passwords = {
  /** Throws `request-invalid` if the password is too short. */
  hash(password: string): Promise<string>
  /**
   * If `stored` is undefined, takes the same time and returns false, so that the response time does not reveal whether
   * a name exists.
   */
  verify(password: string, stored: string | undefined): Promise<boolean>
}

export type PasswordCost = { readonly logN: number; readonly r: number; readonly p: number }

/** One hash uses 32 MB of memory and takes about a quarter of a second. */
export const usualCost: PasswordCost = { logN: 15, r: 8, p: 3 }

const keyBytes = 32
const saltBytes = 16
/** Each hash needs its memory and a thread of the pool that file access uses too. */
const atOnce = 2
const mostWaiting = 32

export function createPasswords(cost: PasswordCost = usualCost): Passwords {
  let running = 0
  const waiting: (() => void)[] = []
  const decoy = format(cost, randomBytes(saltBytes), randomBytes(keyBytes))

  async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (running >= atOnce) {
      if (waiting.length >= mostWaiting)
        throw new GatewayError('limit-exceeded', 'Too many sign-ins at the same time; try again in 5 s', {
          retryAfter: 5,
        })
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
  // The same password can be encoded in several Unicode forms, depending on the keyboard.
  scrypt(password.normalize('NFKC'), salt, keyBytes, options, (error, key) => (error ? reject(error) : resolve(key)))
  return promise
}

function format({ logN, r, p }: PasswordCost, salt: Buffer, key: Buffer): string {
  return ['scrypt', logN, r, p, salt.toString('base64url'), key.toString('base64url')].join('$')
}

function parse(stored: string): PasswordCost & { salt: Buffer; key: Buffer } {
  const match = /^scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(stored)
  if (!match) throw new Error('A stored password hash has an unknown format')
  const [, logN, r, p, salt = '', key = ''] = match
  const bytes = { salt: Buffer.from(salt, 'base64url'), key: Buffer.from(key, 'base64url') }
  return { logN: Number(logN), r: Number(r), p: Number(p), ...bytes }
}
