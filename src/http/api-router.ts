import type { ServerResponse } from 'node:http'
import { implement } from '@orpc/server'
import type { ViewSelector } from '../catalog/catalog.ts'
import { formatProblem } from '../config/config.ts'
import { api } from '../contract/api.ts'
import type { AuditEntry } from '../contract/audit.ts'
import type { Call } from '../contract/call.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Surface } from '../contract/permit.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { ServerDefinition } from '../contract/server.ts'
import type { Tool } from '../contract/tool.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { nearest } from '../lib/text.ts'
import { isAdministrator } from './api-access.ts'
import { callTool } from './api-call.ts'
import { searchTools } from './api-search.ts'

/** What is known of a request beside its input. */
export type ApiContext = {
  readonly principal: Principal
  readonly surface: Surface
  readonly response: ServerResponse
  /** By which address the gateway is known. */
  readonly url: string
}

/** Each endpoint hands over to the gateway and puts the answer into the contract's shape. */
export function createRouter(gateway: Gateway) {
  const on = implement(api).$context<ApiContext>()
  return on.router({
    status: on.status.handler(({ context }) => {
      const status = gateway.status(context.url)
      return isAdministrator(context.principal) ? status : { healthy: status.healthy, version: status.version }
    }),

    servers: {
      list: on.servers.list.handler(() => whole(gateway.listServers())),
      get: on.servers.get.handler(({ input }) => gateway.getServer(input.params.name, input.query?.scope)),
      add: on.servers.add.handler(({ input, context }) => gateway.addServer(context.principal, input)),
      change: on.servers.change.handler(({ input: { params, query, body }, context }) =>
        gateway.changeServer(context.principal, {
          name: params.name,
          scope: query?.scope,
          definition: body.definition,
        }),
      ),
      remove: on.servers.remove.handler(async ({ input: { params, query }, context }) => {
        await gateway.removeServer(context.principal, params.name, query?.scope)
        return { removed: params.name }
      }),
      enable: on.servers.enable.handler(({ input: { params, query }, context }) =>
        gateway.enableServer(context.principal, params.name, true, query?.scope),
      ),
      disable: on.servers.disable.handler(({ input: { params, query }, context }) =>
        gateway.enableServer(context.principal, params.name, false, query?.scope),
      ),
      reconnect: on.servers.reconnect.handler(({ input: { params, query }, context }) =>
        gateway.reconnectServer(context.principal, params.name, query?.scope),
      ),
      validate: on.servers.validate.handler(({ input, signal }) =>
        gateway.validateServer(input.definition, signal ?? never),
      ),
      validateSaved: on.servers.validateSaved.handler(({ input: { params, query, body }, signal }) => {
        const definition = body?.definition ?? gateway.getServer(params.name, query?.scope).definition
        return gateway.validateServer(ServerDefinition.parse(definition), signal ?? never)
      }),
      logs: on.servers.logs.handler(({ input }) => gateway.serverLogs(input.params.name, input.query?.scope)),
    },

    tools: {
      list: on.tools.list.handler(({ input: { toolset, server, query }, context }) => {
        const view = gateway.listTools(context.principal, toSelector(toolset))
        const tools = server === undefined ? view : view.filter((tool) => tool.server === server)
        return whole(query === undefined ? tools : searchTools(tools, query))
      }),
      get: on.tools.get.handler(({ input, context }) => getTool(gateway, context.principal, input.params.name)),
      call: on.tools.call.handler(({ input: { params, body }, context, signal }) =>
        callTool(
          gateway,
          {
            principal: context.principal,
            surface: context.surface,
            selector: toSelector(body.toolset),
            name: params.name,
            arguments: body.arguments,
          },
          signal ?? never,
        ),
      ),
    },

    calls: {
      list: on.calls.list.handler(async ({ input, context }) => {
        const page = await gateway.calls.list({ ...input, principal: toSeen(context.principal, input.principal) })
        return { items: page.items, next: page.next ?? null }
      }),
      get: on.calls.get.handler(({ input, context }) => getCall(gateway, context.principal, input.params.id)),
    },

    tokens: {
      list: on.tokens.list.handler(() => whole(gateway.identity.listTokens())),
      create: on.tokens.create.handler(({ input, context }) =>
        gateway.identity.createToken(input, toPrincipalKey(context.principal)),
      ),
      revoke: on.tokens.revoke.handler(({ input, context }) =>
        gateway.identity.revokeToken(input.params.id, toPrincipalKey(context.principal)),
      ),
    },

    audit: {
      list: on.audit.list.handler(async ({ input }) => {
        const page = await gateway.audit.list(input)
        return { items: page.items, next: page.next ?? null }
      }),
      get: on.audit.get.handler(({ input }) => getEntries(gateway, input.params.id)),
    },

    config: {
      show: on.config.show.handler(() => ({
        file: gateway.config.file,
        config: gateway.config.current(),
        problems: gateway.config.rejected().map(formatProblem),
      })),
      effective: on.config.effective.handler(({ input, context }) => {
        const seen: Principal = input.agent === undefined ? context.principal : { kind: 'agent', name: input.agent }
        const servers = [...gateway.config.effective(seen).servers.values()]
        return {
          servers: servers.map(({ name, scope, definition, origins }) => ({ name, scope, definition, origins })),
        }
      }),
    },
  })
}

/** Requests over HTTP always come with a signal of their own; the type only does not know. */
const never = new AbortController().signal

function whole<Item>(items: Item[]): { items: Item[]; next: null } {
  return { items, next: null }
}

function toSelector(toolset: string | undefined): ViewSelector {
  return toolset === undefined ? { kind: 'all' } : { kind: 'toolset', name: toolset }
}

function getTool(gateway: Gateway, principal: Principal, name: string): Tool {
  const tools = gateway.listTools(principal, { kind: 'all' })
  const found = tools.find((tool) => tool.name === name)
  if (found) return found
  const names = tools.map((tool) => tool.name)
  const suggestion = nearest(name, names)
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
  throw new GatewayError('tool-not-found', `No tool is named ${name}${hint}`, suggestion ? { suggestion } : {})
}

/** Whose calls a principal gets to see: an administrator anybody's, everybody else their own. */
function toSeen(principal: Principal, wanted: string | undefined): string | undefined {
  if (isAdministrator(principal)) return wanted
  const own = toPrincipalKey(principal)
  if (wanted === undefined || wanted === own) return own
  throw new GatewayError('forbidden', 'Only an administrator sees the calls of others')
}

async function getCall(gateway: Gateway, principal: Principal, id: string): Promise<Call> {
  const call = await gateway.findCall(id)
  // The call of somebody else is no different from one that never was.
  if (call && (isAdministrator(principal) || call.principal === toPrincipalKey(principal))) return call
  throw new GatewayError('call-not-found', `No call has the id ${id}`)
}

async function getEntries(gateway: Gateway, id: string): Promise<{ entries: AuditEntry[]; call?: Call }> {
  const [, instance, sequence] = /^(.+):(\d{1,15})$/.exec(id) ?? []
  if (instance !== undefined) {
    const entry = await gateway.audit.find(instance, Number(sequence))
    if (entry) return { entries: [entry] }
    throw new GatewayError('not-found', `The record has no entry ${id}`)
  }
  const call = await gateway.findCall(id)
  const { items } = await gateway.audit.list({ call: id, limit: 1000 })
  if (call || items.length > 0) return { entries: items.reverse(), ...(call && { call }) }
  throw new GatewayError('call-not-found', `No call has the id ${id}`)
}
