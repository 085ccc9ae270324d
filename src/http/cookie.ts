import type { IncomingMessage } from 'node:http'
import type { Listen } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { longestSignIn } from '../identity/identity.ts'
import { valuesOf } from './raw-headers.ts'

/** Reads and writes the cookie of a sign-in. */
export type SignInCookie = {
  /** The value of our cookie in the request; throws if the cookie occurs twice. */
  find(request: IncomingMessage): string | undefined
  set(value: string): string
  clear(): string
}

/** `id` is the id of the gateway's database. */
export function createSignInCookie(listen: Listen, id: string): SignInCookie {
  const secure = isSecure(listen)
  // Browsers share cookies between the ports of a host, so the name contains the id: two gateways on one host must not
  // overwrite each other's cookie. The port is not used, because it may change, and a proxy has another one.
  const name = `${secure ? '__Host-' : ''}sallyport-${id}`
  const attributes = `Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`

  return {
    find(request) {
      const wanted = `${name}=`
      const pairs = valuesOf(request, 'cookie').flatMap((header) => header.split(/; */))
      const [value, ...others] = pairs
        .filter((pair) => pair.startsWith(wanted))
        .map((pair) => pair.slice(wanted.length))
      // A page on a sibling domain may have set the other cookie.
      if (others.length > 0) throw new GatewayError('sign-in-needed', 'The request has several sign-in cookies')
      return value
    },
    set: (value) => `${name}=${value}; Max-Age=${longestSignIn / 1000}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  }
}

/** Whether browsers use HTTPS, to the gateway or to a proxy in front of it. */
export function isSecure({ tls, publicUrl }: Listen): boolean {
  return tls !== undefined || publicUrl?.startsWith('https:') === true
}
