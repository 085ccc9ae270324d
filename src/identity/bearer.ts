import { GatewayError } from '../contract/errors.ts'

/** The token of the Authorization headers of a request, as `headersDistinct` or a single value gives them. */
export function toBearer(headers: string | readonly string[] | undefined): string | undefined {
  const values = typeof headers === 'string' ? [headers] : (headers ?? [])
  // Which one counts would depend on who reads them: a proxy before us may have checked the other.
  if (values.length > 1) throw new GatewayError('token-invalid', 'The request has several Authorization headers')
  const [scheme = '', ...rest] = (values[0] ?? '').trim().split(/ +/)
  return scheme.toLowerCase() === 'bearer' ? rest.join(' ') : undefined
}
