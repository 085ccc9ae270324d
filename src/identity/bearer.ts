import { GatewayError } from '../contract/errors.ts'

/** The bearer token of a request. `headers` are the Authorization headers: `headersDistinct` or a single value. */
export function toBearer(headers: string | readonly string[] | undefined): string | undefined {
  const values = typeof headers === 'string' ? [headers] : (headers ?? [])
  // Several headers are rejected: a proxy in front of the gateway may have checked a different one than the gateway
  // would use.
  if (values.length > 1) throw new GatewayError('token-invalid', 'The request has several Authorization headers')
  const [scheme = '', ...rest] = (values[0] ?? '').trim().split(/ +/)
  return scheme.toLowerCase() === 'bearer' ? rest.join(' ') : undefined
}
