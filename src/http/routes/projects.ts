import { implement } from '@orpc/server'
import type { NamedToolset, ProjectSummary } from '../../contract/api/projects.ts'
import { api } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createProjectsRoutes(gateway: Gateway) {
  const on = implement(api.projects).$context<ApiContext>()
  const list = (): ProjectSummary[] =>
    Object.entries(gateway.config.current().projects).map(([name, { title, owners, rules, repository }]) => ({
      name,
      ...(title !== undefined && { title }),
      owners,
      servers: Object.keys(gateway.config.statedIn({ kind: 'project', name }).servers),
      rules: rules.length,
      ...(repository && { repository: `${repository.path}/${repository.file}` }),
    }))
  function get(wanted: string): ProjectSummary {
    const found = list().find(({ name }) => name === wanted)
    if (found) return found
    throw new GatewayError('not-found', `No project is named ${wanted}`)
  }
  return on.router({
    list: on.list.handler(() => whole(list())),
    get: on.get.handler(({ input: { params } }) => get(params.name)),
    add: on.add.handler(async ({ input, context }) => {
      await gateway.projects.add(context.principal, input)
      return get(input.name)
    }),
    repository: on.repository.handler(({ input: { params }, context }) =>
      gateway.repositories.get(context.principal, params.name),
    ),
    acceptRepository: on.acceptRepository.handler(({ input: { params, body }, context }) =>
      gateway.repositories.accept(context.principal, params.name, body.hash),
    ),
    change: on.change.handler(async ({ input: { params, body }, context }) =>
      get(await gateway.projects.change(context.principal, params.name, body)),
    ),
    removal: on.removal.handler(({ input: { params }, context }) =>
      gateway.removal.plan(context.principal, 'project', params.name),
    ),
    remove: on.remove.handler(({ input: { params }, context }) =>
      gateway.removal.remove(context.principal, 'project', params.name),
    ),
  })
}

export function createToolsetsRoutes(gateway: Gateway) {
  const on = implement(api.toolsets).$context<ApiContext>()
  const list = (): NamedToolset[] =>
    Object.entries(gateway.config.current().toolsets).map(([name, toolset]) => ({ name, ...toolset }))
  return on.router({
    list: on.list.handler(() => whole(list())),
    get: on.get.handler(({ input: { params } }) => {
      const found = list().find(({ name }) => name === params.name)
      if (found) return found
      throw new GatewayError('toolset-not-found', `No toolset is named ${params.name}`)
    }),
  })
}
