import { implement } from '@orpc/server'
import { seesAll } from '../contract/access.ts'
import { api } from '../contract/api.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { createAgentsRoutes } from './routes/agents.ts'
import { createApprovalsRoutes } from './routes/approvals.ts'
import { createAuditRoutes } from './routes/audit.ts'
import { createCallsRoutes } from './routes/calls.ts'
import { createConfigRoutes } from './routes/config.ts'
import type { ApiContext } from './routes/context.ts'
import { createDataRoutes } from './routes/data.ts'
import { createEventsRoutes } from './routes/events.ts'
import { createGalleryRoutes } from './routes/gallery.ts'
import { createGrantsRoutes } from './routes/grants.ts'
import { createImportsRoutes } from './routes/imports.ts'
import { createPeopleRoutes } from './routes/people.ts'
import { createPinsRoutes } from './routes/pins.ts'
import { createProjectsRoutes, createToolsetsRoutes } from './routes/projects.ts'
import { createRegistryRoutes } from './routes/registry.ts'
import { createResultsRoutes } from './routes/results.ts'
import { createRulesRoutes } from './routes/rules.ts'
import { createSecretsRoutes } from './routes/secrets.ts'
import { createServersRoutes } from './routes/servers.ts'
import { createSessionsRoutes } from './routes/sessions.ts'
import { createTokensRoutes } from './routes/tokens.ts'
import { createToolsRoutes } from './routes/tools.ts'
import { createUsersRoutes } from './routes/users.ts'
import { createWebhooksRoutes } from './routes/webhooks.ts'

export type { ApiContext } from './routes/context.ts'

/** Maps each endpoint of the contract to the gateway. */
export function createRouter(gateway: Gateway) {
  const on = implement(api).$context<ApiContext>()
  return on.router({
    status: on.status.handler(({ context }) => {
      const status = gateway.status(context.url)
      return seesAll(context.principal) ? status : { healthy: status.healthy, version: status.version }
    }),
    people: createPeopleRoutes(gateway),
    users: createUsersRoutes(gateway),
    agents: createAgentsRoutes(gateway),
    sessions: createSessionsRoutes(gateway),
    servers: createServersRoutes(gateway),
    imports: createImportsRoutes(gateway),
    gallery: createGalleryRoutes(gateway),
    registry: createRegistryRoutes(gateway),
    projects: createProjectsRoutes(gateway),
    toolsets: createToolsetsRoutes(gateway),
    tools: createToolsRoutes(gateway),
    calls: createCallsRoutes(gateway),
    approvals: createApprovalsRoutes(gateway),
    grants: createGrantsRoutes(gateway),
    events: createEventsRoutes(),
    results: createResultsRoutes(gateway),
    tokens: createTokensRoutes(gateway),
    rules: createRulesRoutes(gateway),
    secrets: createSecretsRoutes(gateway),
    audit: createAuditRoutes(gateway),
    config: createConfigRoutes(gateway),
    data: createDataRoutes(gateway),
    pins: createPinsRoutes(gateway),
    webhooks: createWebhooksRoutes(gateway),
  })
}
