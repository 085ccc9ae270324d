import { timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { checkPassword } from './passwords.ts'
import { toDigest } from './token-text.ts'
import { parseUserName, type Users } from './users.ts'

/** Creates the first administrator, with a one-time code that only the person who started the gateway has seen. */
export type Setup = {
  /** True while there is no administrator. */
  needed(): boolean
  /** Makes a new code and invalidates the one before. Undefined if an administrator exists. */
  code(): string | undefined
  /** Whether a code is valid. Does not use it. */
  accepts(code: string): boolean
  /** Uses the code. Throws `forbidden` if the code is wrong, used or expired. */
  finish(wanted: { code: string; name: string; password: string }): Promise<void>
}

const validFor = 3_600_000

export function createSetup({ users, clock, ids }: { users: Users; clock: Clock; ids: Ids }): Setup {
  let open: { digest: Buffer; until: number } | undefined

  function accepts(code: string): boolean {
    if (!open || open.until <= clock.now() || users.hasAdministrator()) return false
    return timingSafeEqual(open.digest, toDigest(code))
  }

  return {
    needed: () => !users.hasAdministrator(),
    code() {
      if (users.hasAdministrator()) return undefined
      const code = ids.secret(32)
      open = { digest: toDigest(code), until: clock.now() + validFor }
      return code
    },
    accepts,
    async finish({ code, name, password }) {
      if (!accepts(code)) throw closed()
      parseUserName(name)
      checkPassword(password)
      const used = open
      // Cleared before the first `await`, so that only one of two concurrent requests can use the code.
      open = undefined
      const added = await users.addFirst({ name, password }).catch((error: unknown) => {
        open ??= used
        throw error
      })
      if (!added) throw closed()
    },
  }
}

function closed(): GatewayError {
  return new GatewayError(
    'forbidden',
    'This link was used or has expired; `sallyport setup-link` prints a new one while there is no administrator',
  )
}
