import { GatewayError } from '../../contract/errors.ts'
import type { Principal } from '../../contract/principal.ts'
import { readHidden } from '../terminal/hidden-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Address, findAddress, findUrl } from './address.ts'
import type { Client } from './client.ts'
import type { Settings } from './settings.ts'

/** How one command authenticates at the gateway. */
export type Access = {
  address(): Promise<Address>
  /** Signs out if this command signed in. */
  close(): Promise<void>
}

const patience = 30_000

/** Uses a token, or signs in the user of `--as` at the first request. Nothing is stored. */
export function createAccess(terminal: Terminal, settings: Settings): Access {
  const { person } = settings
  if (!person) return { address: () => findAddress(settings), async close() {} }
  let signedIn: Promise<Address> | undefined

  async function signIn(name: string, onInput: boolean): Promise<Address> {
    const url = await findUrl(settings)
    if (!onInput && !terminal.interactive)
      throw new GatewayError('person-needed', `No terminal to ask for the password of ${name}: use --password-stdin`)
    const password = await readHidden(terminal, `Password of ${name}`, 'line')
    const { signIn: send, toClientError } = await import('./client.ts')
    const cookie = await send(url, { name, password }, patience).catch((error: unknown) => {
      throw toClientError(error, url)
    })
    return { url, cookie }
  }

  return {
    async address() {
      // Check again: the gateway may have ended, and another program may listen on its port.
      if (signedIn) await findUrl(settings)
      signedIn ??= signIn(person.name, person.passwordOnInput)
      return signedIn
    },
    async close() {
      const address = await signedIn?.catch(() => undefined)
      if (!address) return
      const { createClient } = await import('./client.ts')
      // A failure is ignored: the sign-in expires on its own.
      await createClient(address, patience)
        .people.signOut()
        .catch(() => {})
    },
  }
}

/** Throws unless a user has signed in. Called before the command asks for input. */
export async function demandPerson(client: Client): Promise<Principal> {
  const me = await client.people.me()
  if (me.person) return me
  throw new GatewayError('person-needed', `This needs a signed-in user; the token of ${me.name} is not enough`)
}
