import type { Call } from '../contract/call.ts'
import type { CallEnd, ResolvedCall } from '../contract/permit.ts'
import { toIso } from '../lib/clock.ts'

/** A call as everyone sees it who may: masked where it holds what must be hidden. */
export function toRecord(
  call: ResolvedCall,
  how: { state: Call['state'] } & Partial<Omit<CallEnd, 'state'>>,
  instance: string,
): Call {
  const shown = call.recorded ?? call
  return {
    id: call.id,
    method: call.method,
    tool: shown.tool,
    server: call.server,
    principal: call.principal,
    ...(call.owner !== undefined && { owner: call.owner }),
    surface: call.surface,
    risk: call.risk,
    state: how.state,
    arguments: shown.arguments,
    decision: call.decision,
    startedAt: toIso(call.startedAt),
    instance,
    ...(how.error && { error: how.error }),
    ...(how.resent && { resent: true }),
    ...(how.masked && { masked: how.masked }),
    ...(how.endedAt !== undefined && { endedAt: toIso(how.endedAt) }),
    ...(how.durationMs !== undefined && { durationMs: how.durationMs }),
    ...(how.givenBytes !== undefined && { cut: { bytes: how.resultBytes ?? 0, given: how.givenBytes } }),
  }
}
