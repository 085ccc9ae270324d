import { GatewayError } from '../contract/errors.ts'
import { type CallMethod, isTaskMethod, type ResolvedCall } from '../contract/permit.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { Decision } from '../policy/policy.ts'

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

/** Says the rule that would allow it, and where: a rule in another scope, or before the one that asks, changes nothing. */
export function approvalRequired(call: ResolvedCall, { rule, drifted }: Decision): GatewayError {
  if (drifted) {
    const why = `${call.tool} needs approval: ${call.decision}. Look with \`sallyport tools diff ${call.tool}\`, then accept or block it`
    return new GatewayError('approval-required', why)
  }
  const place = toRulesKey(rule?.scope ?? 'global')
  return new GatewayError(
    'approval-required',
    `${call.tool} is a ${call.risk} tool and needs approval: ${call.decision}. An administrator can allow it with a rule at the end of \`${place}\` in the configuration: { tools: "${call.tool}", action: allow }`,
  )
}

/** `agent:reviewer` as the key under which its rules stand. */
function toRulesKey(scope: ScopeKey): string {
  if (scope === 'global') return 'rules'
  const colon = scope.indexOf(':')
  return `${scope.slice(0, colon)}s.${scope.slice(colon + 1)}.rules`
}
