import { implement } from '@orpc/server'
import type { ViewSelector } from '../../catalog/catalog.ts'
import { api } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Principal } from '../../contract/principal.ts'
import type { Tool } from '../../contract/tool.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { nearest } from '../../lib/text.ts'
import { callTool } from './call-tool.ts'
import { type ApiContext, never, whole } from './context.ts'
import { searchTools } from './search-tools.ts'

export function createToolsRoutes(gateway: Gateway) {
  const on = implement(api.tools).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ input: { toolset, server, query }, context }) => {
      const view = gateway.catalog.listTools(context.principal, toSelector(toolset))
      const tools = server === undefined ? view : view.filter((tool) => tool.server === server)
      return whole(query === undefined ? tools : searchTools(tools, query))
    }),
    get: on.get.handler(({ input, context }) => getTool(gateway, context.principal, input.params.name)),
    call: on.call.handler(({ input: { params, headers, body }, context, signal }) =>
      callTool(
        gateway,
        {
          principal: context.principal,
          surface: 'http',
          selector: toSelector(body.toolset),
          name: params.name,
          arguments: body.arguments,
          key: headers?.['idempotency-key'],
        },
        {
          signal: signal ?? never,
          delivery: context.delivery,
          onReplayed: () => context.response.setHeader('idempotency-replayed', 'true'),
          onResult(bytes) {
            context.sent.result = bytes
          },
        },
      ),
    ),
  })
}

function toSelector(toolset: string | undefined): ViewSelector {
  return toolset === undefined ? { kind: 'all' } : { kind: 'toolset', name: toolset }
}

function getTool(gateway: Gateway, principal: Principal, name: string): Tool {
  const tools = gateway.catalog.listTools(principal, { kind: 'all' })
  const found = tools.find((tool) => tool.name === name)
  if (found) return found
  const names = tools.map((tool) => tool.name)
  const suggestion = nearest(name, names)
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
  throw new GatewayError('tool-not-found', `No tool is named ${name}${hint}`, suggestion ? { suggestion } : {})
}
