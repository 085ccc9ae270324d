import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'

/**
 * A browser sends the cookie along whichever page asks, so a change by cookie must come from our own pages. Every
 * browser says where a request comes from, in one of two headers; what has neither is no page, and then the type of
 * the body must be one that a form cannot send.
 */
export function demandSameOrigin(request: IncomingMessage, host: string, secure: boolean): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  demandOwnPage(request, host, secure)
  const { origin, 'sec-fetch-site': site, 'content-type': type = '' } = request.headers
  if (site !== undefined || origin !== undefined || request.method === 'DELETE') return
  if (!/^application\/json\s*(;|$)/i.test(type)) throw foreign()
}

/** Throws if the request says that it comes from a page that is not ours. */
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
  return new GatewayError('origin-not-allowed', 'A change by a signed-in browser must come from a page of this gateway')
}
