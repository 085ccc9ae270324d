import type { CallRequest } from '../../calls/calls.ts'
import type { CallAnswer, CallWaiting } from '../../contract/api/tools.ts'
import type { Call } from '../../contract/call.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Delivery } from '../../lib/delivery.ts'
import { toVisible } from '../../shared/visible.ts'

type Called = { status: 200; body: CallAnswer } | { status: 202; body: CallWaiting }

/** Returns a result (also one with a tool error) or the waiting approval. Other outcomes throw an error with the call's id. */
export async function callTool(gateway: Gateway, request: CallRequest, options: Options): Promise<Called> {
  const outcome = await gateway.calls.run(request, { signal: options.signal, onDelivered: options.delivery.onEnd })
  if (outcome.kind === 'refused') throw withCall(outcome.error, outcome.call)
  if (outcome.kind === 'waiting') return { status: 202, body: { call: outcome.call, approval: outcome.approval } }
  if (outcome.replayed) options.onReplayed()
  const { call, answer } = outcome
  if (answer.kind === 'result') {
    options.onResult(answer.bytes)
    return { status: 200, body: { call, result: null } }
  }
  const { message } = answer.value()
  const said = typeof message === 'string' ? `: ${toVisible(message.slice(0, 2000))}` : ''
  throw withCall(new GatewayError('server-refused', `The server refused the call${said}`), call)
}

type Options = {
  readonly signal: AbortSignal
  readonly delivery: Delivery
  /** Called if the answer is from an earlier call with the same idempotency key. */
  onReplayed(): void
  /** Receives the original bytes of the result. */
  onResult(bytes: Buffer): void
}

function withCall(error: GatewayError, call: Call): GatewayError {
  const known = call.counted ? {} : { call: call.id }
  return new GatewayError(error.code, error.message, { ...error.details, ...known }, { cause: error })
}
