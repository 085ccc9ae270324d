import type { IncomingMessage } from 'node:http'
import type { Listen } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { longestSignIn } from '../identity/identity.ts'
import { valuesOf } from './raw-headers.ts'

/** How a sign-in travels between browser and gateway. */
export type SignInCookie = {
  /** What the request holds under our name; throws when that stands there twice. */
  find(request: IncomingMessage): string | undefined
  set(value: string): string
  clear(): string
}

/** `id` is that of the gateway's data. */
export function createSignInCookie(listen: Listen, id: string): SignInCookie {
  const secure = isSecure(listen)
  // Browsers share cookies between the ports of a host: two gateways there must not sign each other's people out. The
  // port itself may change with every start, and a proxy in front has another one.
  const name = `${secure ? '__Host-' : ''}sallyport-${id}`
  const attributes = `Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`

  return {
    find(request) {
      const wanted = `${name}=`
      const pairs = valuesOf(request, 'cookie').flatMap((header) => header.split(/; */))
      const [value, ...others] = pairs
        .filter((pair) => pair.startsWith(wanted))
        .map((pair) => pair.slice(wanted.length))
      // A page of a neighbouring host may have planted the other one.
      if (others.length > 0) throw new GatewayError('sign-in-needed', 'The request has several sign-ins')
      return value
    },
    set: (value) => `${name}=${value}; Max-Age=${longestSignIn / 1000}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  }
}

/** People come by HTTPS, to us or to what stands in front of us. */
export function isSecure({ tls, publicUrl }: Listen): boolean {
  return tls !== undefined || publicUrl?.startsWith('https:') === true
}
