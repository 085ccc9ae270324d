import type { CallEndState } from '../contract/call.ts'
import { GatewayError } from '../contract/errors.ts'
import type { ResolvedCall } from '../contract/permit.ts'

/**
 * The end of a call without a usable answer. The error's `reach` says whether the server may have received the call. `unsent`
 * means that certainly nothing was sent, so the use of a grant or approval is returned.
 */
export function toEnd(
  call: ResolvedCall,
  error: GatewayError,
  stopping: boolean,
): { state: CallEndState; error: GatewayError; unsent?: true } {
  const { state, error: shown } = judge(call, error, stopping)
  return error.reach === 'unsent' ? { state, error: shown, unsent: true } : { state, error: shown }
}

function judge(
  call: ResolvedCall,
  error: GatewayError,
  stopping: boolean,
): { state: CallEndState; error: GatewayError } {
  if (error.code === 'call-cancelled') return { state: 'cancelled', error }
  if (call.risk !== 'read' && mayHaveHappened(error)) return { state: 'unknown', error: unknown(error) }
  if (error.code === 'call-timeout') return { state: 'timeout', error }
  if (stopping) return { state: 'cancelled', error: stopped() }
  return { state: 'failed', error }
}

/** The error of calls that are still running after `limits.grace` when the gateway stops. */
export function stopped(): GatewayError {
  return new GatewayError('shutting-down', 'The gateway stopped before the server answered')
}

/** A call without an answer, or with an invalid answer, may have taken effect. A call that the server refused has not. */
function mayHaveHappened({ reach }: GatewayError): boolean {
  return reach !== 'unsent' && reach !== 'refused'
}

function unknown(error: GatewayError): GatewayError {
  const message = `${error.message}; whether the call took effect is not known`
  const details = { ...error.details, was: error.code }
  return new GatewayError('call-unknown', message, details, { cause: error, reach: 'sent' })
}
