import type { Target } from '../catalog/catalog.ts'
import type { Call, CallEndState } from '../contract/call.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { type CallEnd, type ResolvedCall, toRecordedMeta, toSentMeta } from '../contract/permit.ts'
import { toPrincipalId, toPrincipalKey } from '../contract/principal.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Masking } from '../masking/masking.ts'
import type { Decision } from '../policy/policy.ts'
import { toMirrorHeaders } from '../wire/mirrors.ts'
import type { CallRequest } from './calls.ts'
import { hideArgument } from './kept.ts'
import { toOnceKey } from './once.ts'
import { readResultName } from './own-names.ts'

export type HowItEnded = {
  state: CallEndState
  error?: GatewayError
  resent?: boolean
  resultBytes?: number
  givenBytes?: number
  masked?: number
  unsent?: boolean
}

/** Creates the data of a call: for its start, for its end and for the audit record. */
export type Records = {
  toCall(request: CallRequest, target: Target, decision: Decision): ResolvedCall
  /** A call of a name that does not exist. It is recorded too, because it may be an attempt to misuse the gateway. */
  toUnknown(request: CallRequest): ResolvedCall
  toEnd(call: ResolvedCall, how: HowItEnded): CallEnd
  /** The call for the audit record and for people, with secrets masked. */
  toRecord(call: ResolvedCall, how: { state: Call['state'] } & Partial<Omit<CallEnd, 'state'>>): Call
  mask(value: JsonObject): JsonObject
  maskError(error: GatewayError): GatewayError
}

type RecordsParts = {
  readonly instance: string
  readonly masking: Pick<Masking, 'text' | 'value'>
  readonly clock: Clock
  readonly ids: Ids
}

export function createRecords({ instance, masking, clock, ids }: RecordsParts): Records {
  return { toCall, toUnknown, toEnd, toRecord, mask: (value) => masking.value(value), maskError }

  /** The request of an agent may contain secret values. It is sent unchanged, but recorded with masked values. */
  function withRecorded(call: ResolvedCall): ResolvedCall {
    const args = masking.value(call.arguments)
    const tool = masking.text(call.tool)
    const original = call.original === call.tool ? tool : masking.text(call.original)
    const sent = toSentMeta(call)
    const meta = sent && masking.value(sent)
    if (args === call.arguments && tool === call.tool && original === call.original && meta === sent) return call
    return { ...call, recorded: { arguments: args, tool, original, meta } }
  }

  function maskError(error: GatewayError): GatewayError {
    const message = masking.text(error.message)
    const details = masking.value(error.details)
    if (message === error.message && details === error.details) return error
    return new GatewayError(error.code, message, details, { cause: error, reach: error.reach })
  }

  function toCall(request: CallRequest, target: Target, decision: Decision): ResolvedCall {
    const mirrors = target.liveMirrors ?? target.mirrors
    return withRecorded({
      ...toBeginning(request),
      connection: target.connection,
      server: target.server,
      scope: target.scope,
      tool: target.publicName,
      original: target.original,
      arguments: request.arguments,
      risk: target.risk,
      decision: decision.because,
      ...toMeta(request),
      ...(request.input && { input: request.input }),
      ...(request.key !== undefined && { once: toOnceKey(request.key, target, request) }),
      ...toInProcessParts(request, target),
      ...(mirrors?.length && { mirrored: toMirrorHeaders(mirrors, request.arguments) }),
    })
  }

  function toBeginning({ method = 'tools/call', principal, surface }: CallRequest) {
    return {
      id: ids.next('call'),
      method,
      principal: toPrincipalKey(principal),
      principalId: toPrincipalId(principal),
      ...(principal.owner !== undefined && { owner: principal.owner }),
      surface,
      startedAt: clock.now(),
      begun: clock.monotonic(),
    }
  }

  function toUnknown(request: CallRequest): ResolvedCall {
    return withRecorded({
      ...toBeginning(request),
      connection: '',
      server: '',
      scope: 'global',
      tool: request.name.slice(0, 256),
      original: '',
      arguments:
        request.name === readResultName ? hideArgument(request.arguments, 'handle').arguments : request.arguments,
      risk: (request.method ?? 'tools/call') === 'tools/call' ? 'write' : 'read',
      decision: 'the caller has no tool, prompt or resource of this name',
      ...toMeta(request),
    })
  }

  function toEnd(call: ResolvedCall, how: HowItEnded): CallEnd {
    const endedAt = clock.now()
    return {
      state: how.state,
      endedAt,
      durationMs:
        call.begun === undefined ? Math.max(0, endedAt - call.startedAt) : Math.round(clock.monotonic() - call.begun),
      ...(how.error && { error: { code: how.error.code, message: how.error.message } }),
      ...(how.resultBytes !== undefined && { resultBytes: how.resultBytes }),
      ...(how.givenBytes !== undefined && { givenBytes: how.givenBytes }),
      ...(how.resent && { resent: true }),
      ...(how.masked && { masked: how.masked }),
      ...(how.unsent && { unsent: true }),
    }
  }

  function toRecord(call: ResolvedCall, how: { state: Call['state'] } & Partial<Omit<CallEnd, 'state'>>): Call {
    const shown = call.recorded ?? call
    const meta = toRecordedMeta(call)
    return {
      id: call.id,
      method: call.method,
      tool: shown.tool,
      server: call.server,
      principal: call.principal,
      principalId: call.principalId,
      ...(call.owner !== undefined && { owner: call.owner }),
      surface: call.surface,
      risk: call.risk,
      state: how.state,
      arguments: shown.arguments,
      ...(meta && { meta }),
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
}

function toInProcessParts({ arguments: given }: CallRequest, { inProcess }: Target): Partial<ResolvedCall> {
  if (!inProcess) return {}
  const { bearer } = inProcess
  return { uncut: true, ...(bearer !== undefined && hideArgument(given, bearer)) }
}

function toMeta({ meta, trace }: CallRequest): Pick<ResolvedCall, 'meta' | 'trace'> {
  return { ...(meta && { meta }), ...(trace && { trace }) }
}
