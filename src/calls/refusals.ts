import type { Approval } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import { type CallMethod, isTaskMethod, type ResolvedCall } from '../contract/permit.ts'

export function notFound(method: CallMethod, name: string): GatewayError {
  const shown = JSON.stringify(name.slice(0, 128))
  if (method === 'tools/call') return new GatewayError('tool-not-found', `No tool is named ${shown}`)
  if (method === 'prompts/get') return new GatewayError('prompt-not-found', `No prompt is named ${shown}`)
  if (isTaskMethod(method)) return new GatewayError('task-not-found', `None of your tasks has the id ${shown}`)
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
      ? `${tool} was approved, but the call was not repeated in time`
      : `Nobody answered the approval for ${tool} in time`
  return new GatewayError('approval-expired', message, { approval: id })
}

export function withdrawn({ tool, id }: Approval): GatewayError {
  return new GatewayError('approval-withdrawn', `The approval for ${tool} was withdrawn`, { approval: id })
}

export function changedSinceApproval({ tool }: ResolvedCall): GatewayError {
  return new GatewayError(
    'approval-withdrawn',
    `The definition, the server or the rules of ${tool} changed after the approval was requested`,
  )
}

/** For an approved call that certainly was not sent: the caller can repeat it with the same approval. */
export function stillApproved({ permission }: ResolvedCall, why: GatewayError): GatewayError {
  if (!permission || !('approval' in permission)) return why
  const message = `${why.message}. Nothing was sent, and the approval is still valid: repeat the same call`
  return new GatewayError(why.code, message, { ...why.details, approval: permission.approval }, { cause: why })
}

export function serverDisconnected({ server }: ResolvedCall, { id }: Approval): GatewayError {
  const message = `The server ${server} is not connected. Nothing was sent, and the approval is still valid: repeat the same call`
  return new GatewayError('server-unavailable', message, { approval: id })
}

export function tooManyWaiting(principal: string): GatewayError {
  const message = `Too many calls of ${principal} are waiting for approval; try again when some are answered`
  return new GatewayError('limit-exceeded', message, { limit: 'waiting', retryAfter: 30, retryAfterMs: 30_000 })
}

/** The error for a caller whose request ends while the approval still waits. Each surface translates it. */
export function waiting({ id, tool, reason }: Approval): GatewayError {
  const message = `${tool} is waiting for approval ${id}; repeat the same call to continue. Approval is required because ${reason}`
  return new GatewayError('approval-waiting', message, { approval: id })
}
