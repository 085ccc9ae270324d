import { implement } from '@orpc/server'
import type { ListedServer, ServerLogs } from '../../contract/api/servers.ts'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { KeptLogs } from '../../servers/servers.ts'
import { type ApiContext, never, whole } from './context.ts'

export function createServersRoutes(gateway: Gateway) {
  const on = implement(api.servers).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ input: { include, scope, ...query }, context }) => {
      if (include === undefined) return whole<ListedServer>(gateway.servers.list(context.principal, scope))
      const { items, next = null } = gateway.servers.listWithTools(context.principal, query, scope)
      return { items, next }
    }),
    get: on.get.handler(({ input, context }) =>
      gateway.servers.get(context.principal, input.params.name, input.query?.scope),
    ),
    add: on.add.handler(({ input, context }) => gateway.servers.add(context.principal, input)),
    change: on.change.handler(({ input: { params, query, body }, context }) =>
      gateway.servers.change(context.principal, {
        name: params.name,
        scope: query?.scope,
        definition: body.definition,
        keepLiteral: body.keepLiteral,
      }),
    ),
    remove: on.remove.handler(async ({ input: { params, query }, context }) => {
      await gateway.servers.remove(context.principal, params.name, query?.scope)
      return { removed: params.name }
    }),
    enable: on.enable.handler(({ input: { params, query }, context }) =>
      gateway.servers.enable(context.principal, params.name, true, query?.scope),
    ),
    disable: on.disable.handler(({ input: { params, query }, context }) =>
      gateway.servers.enable(context.principal, params.name, false, query?.scope),
    ),
    reconnect: on.reconnect.handler(({ input: { params, query }, context }) =>
      gateway.servers.reconnect(context.principal, params.name, query?.scope),
    ),
    validate: on.validate.handler(({ input, context, signal }) =>
      gateway.servers.validate(context.principal, input, signal ?? never),
    ),
    validateSaved: on.validateSaved.handler(({ input: { params, query, body }, context, signal }) => {
      const wanted = { name: params.name, scope: query?.scope, definition: body?.definition }
      return gateway.servers.validate(context.principal, wanted, signal ?? never)
    }),
    risks: on.risks.handler(({ input: { params, query }, context }) =>
      whole(gateway.servers.risks(context.principal, params.name, query?.scope)),
    ),
    setRisks: on.setRisks.handler(({ input: { params, query, body }, context }) =>
      gateway.servers.setRisks(context.principal, { name: params.name, scope: query?.scope, risks: body.risks }),
    ),
    logs: on.logs.handler(({ input, context }) =>
      toServerLogs(gateway.servers.logs(context.principal, input.params.name, input.query?.scope), input.query?.after),
    ),
  })
}

/** `after` is `LOG:LINES`: the id of the log, and the number of lines already read. */
function toServerLogs({ lines, dropped, unfinished, log }: KeptLogs, after: string | undefined): ServerLogs {
  const end = dropped + lines.length - (unfinished ? 1 : 0)
  const next = `${log}:${end}`
  if (after === undefined) return { lines, dropped, next }
  const [place = '', count] = after.split(':')
  const read = place === log ? Number(count) || 0 : 0
  const from = Math.max(read, dropped)
  return { lines: lines.slice(from - dropped, end - dropped), dropped: from - read, next }
}
