import { agents } from './api/agents.ts'
import { approvals } from './api/approvals.ts'
import { audit } from './api/audit.ts'
import { calls } from './api/calls.ts'
import { config } from './api/config.ts'
import { data } from './api/data.ts'
import { events } from './api/events.ts'
import { gallery } from './api/gallery.ts'
import { grants } from './api/grants.ts'
import { imports } from './api/imports.ts'
import { people } from './api/people.ts'
import { pins } from './api/pins.ts'
import { projects, toolsets } from './api/projects.ts'
import { registry } from './api/registry.ts'
import { results } from './api/results.ts'
import { rules } from './api/rules.ts'
import { secrets } from './api/secrets.ts'
import { servers } from './api/servers.ts'
import { sessions } from './api/sessions.ts'
import { status } from './api/status.ts'
import { tokens } from './api/tokens.ts'
import { tools } from './api/tools.ts'
import { users } from './api/users.ts'
import { webhooks } from './api/webhooks.ts'

export { door } from './api/people.ts'

/** The REST endpoints. The server, the CLI, the dashboard and the API reference use this description. Paths are below `/api`. */
export const api = {
  status,
  people,
  users,
  agents,
  sessions,
  tokens,
  servers,
  imports,
  gallery,
  registry,
  projects,
  toolsets,
  tools,
  pins,
  calls,
  approvals,
  grants,
  events,
  results,
  rules,
  secrets,
  audit,
  config,
  data,
  webhooks,
}
