import { type GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Link } from './link.ts'

/** Asks a silent server whether it is there, again and again; calls back when it does not answer. */
export function watchSilence(
  link: Link,
  { clock, idleMs }: { readonly clock: Clock; readonly idleMs: number },
  onSilent: (error: GatewayError) => void,
): () => void {
  const ended = new AbortController()
  const check = () => {
    if (ended.signal.aborted) return
    const idle = clock.monotonic() - link.lastHeardAt()
    if (idle < idleMs) return void clock.after(idleMs - idle, check)
    link.prove(ended.signal).then(
      () => clock.after(idleMs, check),
      (error: unknown) => ended.signal.aborted || onSilent(toGatewayError(error)),
    )
  }
  clock.after(idleMs, check)
  return () => ended.abort()
}
