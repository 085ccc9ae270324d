import { GatewayError } from '../contract/errors.ts'

/** Why a call ends early: its caller gave up, or whatever the signal was aborted with says so. */
export function cancelledError(signal: AbortSignal, sent: boolean): GatewayError {
  const { reason } = signal
  const message = reason instanceof GatewayError ? reason.message : 'The caller cancelled'
  return new GatewayError('call-cancelled', message, { sent })
}
