import { GatewayError } from '../../contract/errors.ts'
import { toVisible } from '../../shared/visible.ts'
import type { ResponseHeaders } from './response.ts'

export function toStatusError(status: number, headers: ResponseHeaders, lostSession: boolean): GatewayError {
  const [facts, refused, sent] = [{ status }, { reach: 'refused' }, { reach: 'sent' }] as const
  if (status === 401 || status === 403) {
    return new GatewayError('server-auth', `The server answered ${status}: it wants other credentials`, facts, refused)
  }
  if (status === 404 && lostSession)
    return new GatewayError('session-lost', 'The server has forgotten the session', facts, refused)
  if (status >= 300 && status < 400) {
    const target = toPlace(headers.get('location') ?? '')
    const message = `The server redirects to ${target}; redirects are not followed`
    return new GatewayError('connect-failed', message, facts, sent)
  }
  if (status === 429 || status === 503) {
    const retryAfter = toRetryAfter(headers.get('retry-after'))
    const message = `The server answered ${status}: it has too much to do`
    return new GatewayError('limit-exceeded', message, { ...facts, ...(retryAfter && { retryAfter }) }, refused)
  }
  if (status < 300)
    return new GatewayError('server-broken', 'The server answered in a form that is not MCP', facts, sent)
  const message = `The server answered with HTTP status ${status}`
  if (status >= 500) return new GatewayError('server-failed', message, facts, sent)
  return new GatewayError('connect-failed', message, facts, refused)
}

/** The rest of an address may repeat what was sent, and cut in two it could not be recognised any more. */
function toPlace(location: string): string {
  return URL.canParse(location) ? toVisible(new URL(location).host) : 'another path'
}

/** Seconds, within an hour: a server does not get to park its callers for ever. */
function toRetryAfter(value: string | undefined): number | undefined {
  const seconds = Number(value)
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(3600, Math.ceil(seconds)) : undefined
}

export function toLinkError(error: unknown, closing: boolean): GatewayError {
  if (error instanceof GatewayError) return error
  if (closing) return new GatewayError('server-unavailable', 'The connection is being closed')
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  return new GatewayError('server-broken', `The link to the server broke (${code})`, { errno: code }, { cause: error })
}
