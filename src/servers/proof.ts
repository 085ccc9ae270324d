import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Link } from './link.ts'

type SilenceParts = { readonly clock: Clock; readonly idleMs: number; readonly proofTimeoutMs: number }

/** Checks a silent server at intervals; calls `onSilent` when it does not answer. Returns a function that stops it. */
export function watchSilence(
  link: Link,
  { clock, idleMs, proofTimeoutMs }: SilenceParts,
  onSilent: (error: GatewayError) => void,
): () => void {
  const ended = new AbortController()
  const check = () => {
    if (ended.signal.aborted) return
    const idle = clock.monotonic() - link.lastHeardAt()
    if (idle < idleMs) return void clock.after(idleMs - idle, check)
    link.prove(ended.signal).then(
      () => clock.after(idleMs, check),
      (error: unknown) => ended.signal.aborted || onSilent(toSilence(toGatewayError(error), proofTimeoutMs)),
    )
  }
  clock.after(idleMs, check)
  return () => ended.abort()
}

function toSilence(error: GatewayError, proofTimeoutMs: number): GatewayError {
  if (error.code !== 'call-timeout') return error
  const message = `The gateway closed the connection: the server was silent and did not answer a check within ${proofTimeoutMs} ms`
  return new GatewayError('call-timeout', message, { ...error.details, check: true }, { cause: error })
}
