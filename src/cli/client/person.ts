import { GatewayError } from '../../contract/errors.ts'
import type { Principal } from '../../contract/principal.ts'
import { readHidden } from '../terminal/hidden-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Address, findAddress, findUrl } from './address.ts'
import type { Client } from './client.ts'
import type { Settings } from './settings.ts'

/** By which right one command speaks to the gateway. */
export type Access = {
  address(): Promise<Address>
  /** Whoever signed in for this command signs out. */
  close(): Promise<void>
}

const patience = 30_000

/** A token, or a person who signs in when the first request is made. Nothing of it is kept. */
export function createAccess(terminal: Terminal, settings: Settings): Access {
  const { person } = settings
  if (!person) return { address: () => findAddress(settings), async close() {} }
  let signedIn: Promise<Address> | undefined

  async function signIn(name: string, onInput: boolean): Promise<Address> {
    const url = await findUrl(settings)
    if (!onInput && !terminal.interactive)
      throw new GatewayError('person-needed', `Nobody can be asked for the password of ${name}: use --password-stdin`)
    const password = await readHidden(terminal, `Password of ${name}`, 'line')
    const { signIn: send, toClientError } = await import('./client.ts')
    const cookie = await send(url, { name, password }, patience).catch((error: unknown) => {
      throw toClientError(error, url)
    })
    return { url, cookie }
  }

  return {
    async address() {
      // A later request may come after the gateway has ended and another program has taken its port.
      if (signedIn) await findUrl(settings)
      signedIn ??= signIn(person.name, person.passwordOnInput)
      return signedIn
    },
    async close() {
      const address = await signedIn?.catch(() => undefined)
      if (!address) return
      const { createClient } = await import('./client.ts')
      // It ends by itself as well; a gateway that is gone has nothing to forget.
      await createClient(address, patience)
        .people.signOut()
        .catch(() => {})
    },
  }
}

/** Whoever may not is told before anything is asked. */
export async function demandPerson(client: Client): Promise<Principal> {
  const me = await client.people.me()
  if (me.person) return me
  throw new GatewayError('person-needed', `Only a person does this, and ${me.name} is none`)
}
