import { implement } from '@orpc/server'
import { seesAll } from '../../contract/access.ts'
import type { Whose } from '../../contract/api/rules.ts'
import { api } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import { type Principal, toPrincipalId, toPrincipalKey } from '../../contract/principal.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createRulesRoutes(gateway: Gateway) {
  const on = implement(api.rules).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ input, context }) => {
      const everything = toKey(input) === undefined && seesAll(context.principal)
      const all = everything ? gateway.rules.listAll() : gateway.rules.list(toMeant(gateway, context.principal, input))
      return whole(all.filter(({ scope }) => input.scope === undefined || input.scope === scope))
    }),
    set: on.set.handler(({ input: { query, body }, context }) =>
      gateway.rules.set(context.principal, query.scope, body.rules),
    ),
    test: on.test.handler(({ input, context }) => {
      const meant = toMeant(gateway, context.principal, input)
      const tested = gateway.rules.test(meant, input)
      if (seesAll(context.principal)) return tested
      // A caller must not see rules that are about other principals.
      const own = new Map(gateway.rules.list(meant).map(({ scope, rules }) => [scope, rules.map(({ index }) => index)]))
      const scopes = tested.scopes.map(({ rules, ...scope }) => ({
        ...scope,
        rules: rules.filter(({ index }) => own.get(scope.scope)?.includes(index)),
      }))
      return { ...tested, scopes }
    }),
    replay: on.replay.handler(({ input, context }) => {
      const everyone = toKey(input) === undefined && seesAll(context.principal)
      const principal = everyone ? undefined : toPrincipalKey(toMeant(gateway, context.principal, input))
      const principalId = seesAll(context.principal) ? undefined : idOf(gateway, context.principal, principal)
      return gateway.rules.replay({ ...input, principal, principalId })
    }),
  })
}

/** The id, because the name may have belonged to a removed identity before. */
function idOf(gateway: Gateway, caller: Principal, key = toPrincipalKey(caller)): string {
  return key === toPrincipalKey(caller) ? toPrincipalId(caller) : (gateway.identity.findId(key) ?? '')
}

function toKey({ agent, principal }: Whose): string | undefined {
  return agent === undefined ? principal : `agent:${agent}`
}

/** The principal to test. Administrators and auditors may name any principal, users only themselves and their agents. */
function toMeant(gateway: Gateway, caller: Principal, whose: Whose): Principal {
  const key = toKey(whose)
  if (key === undefined || key === toPrincipalKey(caller)) return caller
  const meant = gateway.config.describePrincipal(key)
  if (seesAll(caller)) return meant
  if (caller.kind === 'user' && meant.owner !== undefined && meant.owner === caller.name) return meant
  throw new GatewayError('forbidden', 'Only administrators and auditors may see rules of other principals')
}
