import type { CallEndState } from '../contract/call.ts'
import { GatewayError } from '../contract/errors.ts'
import type { ResolvedCall } from '../contract/permit.ts'

/**
 * What a call that got no answer ends as. The link knows whether the server may have seen anything of it; `unsent` is
 * what certainly never left, and what a grant does not pay for.
 */
export function toEnd(
  call: ResolvedCall,
  error: GatewayError,
  stopping: boolean,
): { state: CallEndState; error: GatewayError; unsent?: true } {
  const { state, error: told } = judge(call, error, stopping)
  return error.reach === 'unsent' ? { state, error: told, unsent: true } : { state, error: told }
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

/** The error of calls that are still running when the gateway stops and `limits.grace` is over. */
export function stopped(): GatewayError {
  return new GatewayError('shutting-down', 'The gateway stopped before the server answered')
}

/** A refusal before the work proves that nothing was done. Silence does not, nor does an answer that makes no sense. */
function mayHaveHappened({ reach }: GatewayError): boolean {
  return reach !== 'unsent' && reach !== 'refused'
}

function unknown(error: GatewayError): GatewayError {
  const message = `${error.message}; whether the call took effect is not known`
  const details = { ...error.details, was: error.code }
  return new GatewayError('call-unknown', message, details, { cause: error, reach: 'sent' })
}
