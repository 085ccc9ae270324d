import { GatewayError } from '../../contract/errors.ts'
import { toVisible } from '../../shared/visible.ts'
import type { ResponseHeaders } from './response.ts'

export function toStatusError(status: number, headers: ResponseHeaders, lostSession: boolean): GatewayError {
  const [facts, refused, sent] = [{ status }, { reach: 'refused' }, { reach: 'sent' }] as const
  if (status === 401 || status === 403) {
    return new GatewayError(
      'server-auth',
      `The server rejected the credentials (HTTP status ${status})`,
      facts,
      refused,
    )
  }
  if (status === 404 && lostSession)
    return new GatewayError('session-lost', 'The server has ended the MCP session', facts, refused)
  if (status >= 300 && status < 400) {
    const target = toPlace(headers.get('location') ?? '')
    const message = `The server redirects to ${target}; redirects are not followed`
    return new GatewayError('connect-failed', message, facts, sent)
  }
  if (status === 429 || status === 503) {
    const retryAfter = toRetryAfter(headers.get('retry-after'))
    const message = `The server is overloaded (HTTP status ${status})`
    return new GatewayError('limit-exceeded', message, { ...facts, ...(retryAfter && { retryAfter }) }, refused)
  }
  if (status < 300)
    return new GatewayError(
      'server-broken',
      'The answer of the server is not MCP: the content type or encoding is not supported',
      facts,
      sent,
    )
  const message = `The server answered with HTTP status ${status}`
  if (status >= 500) return new GatewayError('server-failed', message, facts, sent)
  return new GatewayError('connect-failed', message, facts, refused)
}

/** Only the host is shown: the rest of the address may contain a part of a secret, which masking would not recognise. */
function toPlace(location: string): string {
  return URL.canParse(location) ? toVisible(new URL(location).host) : 'another path'
}

/** Seconds, at most one hour, so that a server cannot make callers wait for ever. */
function toRetryAfter(value: string | undefined): number | undefined {
  const seconds = Number(value)
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(3600, Math.ceil(seconds)) : undefined
}

export function toLinkError(error: unknown, closing: boolean): GatewayError {
  if (error instanceof GatewayError) return error
  if (closing) return new GatewayError('server-unavailable', 'The connection is being closed')
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  return new GatewayError(
    'server-broken',
    `The connection to the server broke (${code})`,
    { errno: code },
    { cause: error },
  )
}
