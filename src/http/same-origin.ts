import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'

/**
 * Protects against CSRF: a browser sends the cookie with requests of any page, so a change with a cookie must come from our
 * own pages. Browsers send `Origin` or `Sec-Fetch-Site`. A request with neither header is not from a browser page; then the
 * content type must be one that a form cannot send.
 */
export function demandSameOrigin(request: IncomingMessage, host: string, secure: boolean): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  demandOwnPage(request, host, secure)
  const { origin, 'sec-fetch-site': site, 'content-type': type = '' } = request.headers
  if (site !== undefined || origin !== undefined || request.method === 'DELETE') return
  if (!/^application\/json\s*(;|$)/i.test(type)) throw foreign()
}

/** Throws if the headers say that the request comes from a page of another site. */
export function demandOwnPage(request: IncomingMessage, host: string, secure: boolean): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (site !== undefined && site !== 'same-origin') throw foreign()
  if (origin !== undefined && !isOwn(origin, host, secure)) throw foreign()
}

function isOwn(origin: string, host: string, secure: boolean): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, host: from } = new URL(origin)
  return protocol === (secure ? 'https:' : 'http:') && from === withoutUsualPort(host, protocol)
}

function withoutUsualPort(host: string, protocol: string): string {
  return URL.canParse(`${protocol}//${host}`) ? new URL(`${protocol}//${host}`).host : host
}

function foreign(): GatewayError {
  return new GatewayError(
    'origin-not-allowed',
    'Changes with a sign-in cookie are only allowed from pages of this gateway',
  )
}
