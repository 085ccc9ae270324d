import { GatewayError } from '../../contract/errors.ts'
import type { Address } from '../client/address.ts'
import type { Client } from '../client/client.ts'
import type { Context } from './command.ts'

/** What a command needs to receive events of the gateway. */
export type Live = {
  readonly address: Address
  readonly client: Client
  /** Throws if the gateway of the data folder now has another address. */
  recheck(): Promise<void>
}

const deadline = 30_000

export async function goLive(context: Context): Promise<Live> {
  const { createClient } = await import('../client/client.ts')
  const address = await context.address()
  return {
    address,
    client: createClient(address, deadline),
    async recheck() {
      const { url } = await context.address()
      if (url !== address.url) throw new GatewayError('unreachable', `The gateway has moved to ${url}`)
    },
  }
}
