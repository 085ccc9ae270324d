import type { ServerResponse } from 'node:http'
import type { Principal } from '../../contract/principal.ts'
import type { Delivery } from '../../lib/delivery.ts'
import type { SignInCookie } from '../cookie.ts'

/** The context of an authenticated request. */
export type ApiContext = {
  readonly principal: Principal
  readonly response: ServerResponse
  readonly delivery: Delivery
  /** The result of a tool call, to be sent as original bytes. */
  readonly sent: { result?: Buffer }
  readonly cookie: SignInCookie
  /** Public address of the gateway. */
  readonly url: string
}

/** The context of a request without authentication. */
export type SignInContext = Pick<ApiContext, 'response' | 'cookie'> & { readonly address: string }

/** HTTP requests always have a signal, but the framework's type says that it may be missing. */
export const never = new AbortController().signal

/** A list with a single page. */
export function whole<Item>(items: Item[]): { items: Item[]; next: null } {
  return { items, next: null }
}
