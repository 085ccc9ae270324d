import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Link, type LinkParts, openLink, type Way, type WayToTry } from './link.ts'

export type NegotiateOptions = {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** The way that worked the last time. */
  readonly remembered: Way | undefined
}

/** Opens a link in the newest way that the server supports. Tries the remembered way first, then newest to oldest. */
export async function negotiate(parts: LinkParts, options: NegotiateOptions): Promise<Link> {
  let first: GatewayError | undefined
  for (const way of waysOf(parts.definition.transport, options.remembered)) {
    try {
      return await openLink(way, parts, options)
    } catch (error) {
      options.signal.throwIfAborted()
      const failure = toGatewayError(error)
      if (!mayTryOther(failure)) throw failure
      first = informative(first, failure)
    }
  }
  throw first ?? new GatewayError('internal', 'No connection attempt was made')
}

function waysOf(transport: 'stdio' | 'http' | 'sse', remembered: Way | undefined): readonly WayToTry[] {
  if (transport === 'sse') return ['sse']
  // Some programs end when they receive an unknown request: they are started again and asked in the older era.
  if (transport === 'stdio') return remembered === undefined ? ['probe', 'legacy'] : [remembered, 'probe']
  const all: readonly Way[] = ['modern', 'legacy', 'sse']
  if (remembered === undefined) return all
  return [remembered, ...all.filter((way) => way !== remembered)]
}

/** An unreachable server or missing credentials fail in every era. */
function mayTryOther(failure: GatewayError): boolean {
  if (failure.code === 'server-auth' || failure.code === 'spawn-failed' || failure.code === 'egress-denied')
    return false
  if (failure.code === 'connect-failed') return typeof failure.details.status === 'number' && !isRedirect(failure)
  return failure.code !== 'call-timeout'
}

function isRedirect(failure: GatewayError): boolean {
  const { status } = failure.details
  return typeof status === 'number' && status >= 300 && status < 400
}

/** Chooses the more useful of two failures: usually the one of the older era. */
function informative(before: GatewayError | undefined, failure: GatewayError): GatewayError {
  if (!before) return failure
  return failure.code === 'connect-failed' ? before : failure
}
