import type { ServerResponse } from 'node:http'
import type { Principal } from '../../contract/principal.ts'
import type { Delivery } from '../../lib/delivery.ts'
import type { SignInCookie } from '../cookie.ts'

/** What is known of a request beside its input. */
export type ApiContext = {
  readonly principal: Principal
  readonly response: ServerResponse
  readonly delivery: Delivery
  /** What a server answered to a call, to be sent byte by byte. */
  readonly sent: { result?: Buffer }
  /** How a sign-in travels. */
  readonly cookie: SignInCookie
  /** By which address the gateway is known. */
  readonly url: string
}

/** What is known of a request of somebody who is not known yet. */
export type DoorContext = Pick<ApiContext, 'response' | 'cookie'> & { readonly address: string }

/** Requests over HTTP always come with a signal of their own; the type only does not know. */
export const never = new AbortController().signal

/** A list that is given as a whole. */
export function whole<Item>(items: Item[]): { items: Item[]; next: null } {
  return { items, next: null }
}
