import { implement } from '@orpc/server'
import { formatProblem, toShownConfig } from '../../config/config.ts'
import { api } from '../../contract/api.ts'
import type { ScopeKey } from '../../contract/scope.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createConfigRoutes(gateway: Gateway) {
  const on = implement(api.config).$context<ApiContext>()
  return on.router({
    show: on.show.handler(() => ({
      file: gateway.config.file,
      config: toShownConfig(gateway.config.current()),
      problems: gateway.config.rejected().map(formatProblem),
    })),
    files: on.files.handler(() => whole(gateway.serverFiles.list())),
    trust: on.trust.handler(({ input, context }) => gateway.serverFiles.trust(context.principal, input)),
    effective: on.effective.handler(({ input: { include = '', ...of }, context }) => ({
      servers: gateway.servers.effective(context.principal, toScopeKey(of), new Set(include.split(','))),
    })),
  })
}

type Wanted = Readonly<Partial<Record<'agent' | 'user' | 'session' | 'project', string | undefined>>>

function toScopeKey({ agent, user, session, project }: Wanted): ScopeKey | undefined {
  if (agent !== undefined) return `agent:${agent}`
  if (user !== undefined) return `user:${user}`
  if (session !== undefined) return `session:${session}`
  return project === undefined ? undefined : `project:${project}`
}
