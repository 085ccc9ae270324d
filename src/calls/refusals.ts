import type { Approval } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import { type CallMethod, isTaskMethod, type ResolvedCall } from '../contract/permit.ts'

export function notFound(method: CallMethod, name: string): GatewayError {
  const shown = JSON.stringify(name.slice(0, 128))
  if (method === 'tools/call') return new GatewayError('tool-not-found', `No tool is named ${shown}`)
  if (method === 'prompts/get') return new GatewayError('prompt-not-found', `No prompt is named ${shown}`)
  if (isTaskMethod(method)) return new GatewayError('task-not-found', `No task of yours has the id ${shown}`)
  return new GatewayError('resource-not-found', `No resource has the address ${shown}`, { uri: name.slice(0, 2048) })
}

export function denied(call: ResolvedCall): GatewayError {
  return new GatewayError('call-denied', `${call.tool} was denied: ${call.decision}`)
}

export function deniedByPerson({ tool, answers }: Approval): GatewayError {
  const { by, reason } = answers.at(-1) ?? {}
  const why = reason === undefined || reason === '' ? 'no reason was given' : reason
  return new GatewayError('approval-denied', `${by ?? 'A person'} denied ${tool}: ${why}`)
}

export function expired({ tool, id, state }: Approval): GatewayError {
  const message =
    state === 'lapsed'
      ? `${tool} was approved, and the same call was not made again in time`
      : `Nobody answered in time whether ${tool} may run`
  return new GatewayError('approval-expired', message, { approval: id })
}

export function withdrawn({ tool, id }: Approval): GatewayError {
  return new GatewayError('approval-withdrawn', `The approval for ${tool} does not count any more`, { approval: id })
}

export function changedMeanwhile({ tool }: ResolvedCall): GatewayError {
  return new GatewayError('approval-withdrawn', `${tool} is no longer what was approved`)
}

/** Of an approved call that certainly was not sent: the caller may repeat it without asking again. */
export function stillApproved({ permission }: ResolvedCall, why: GatewayError): GatewayError {
  if (!permission || !('question' in permission)) return why
  const message = `${why.message}. Nothing was sent, and the approval is still valid: repeat the same call`
  return new GatewayError(why.code, message, { ...why.details, approval: permission.question }, { cause: why })
}

export function serverAway({ server }: ResolvedCall, { id }: Approval): GatewayError {
  const message = `The server ${server} is not connected. Nothing was sent, and the approval is still valid: repeat the same call`
  return new GatewayError('server-unavailable', message, { approval: id })
}

export function tooManyAsk(principal: string): GatewayError {
  const message = `Too many calls of ${principal} wait for a person already; try again when some are answered`
  return new GatewayError('limit-exceeded', message, { limit: 'waiting', retryAfter: 30, retryAfterMs: 30_000 })
}

/** What a caller hears that does not wait any longer; how it is told is the surface's business. */
export function waiting({ id, tool, reason }: Approval): GatewayError {
  const message = `${tool} is waiting for approval ${id}; repeat the same call to go on. It was asked because ${reason}`
  return new GatewayError('approval-waiting', message, { approval: id })
}
