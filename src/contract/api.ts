import { audit } from './api/audit.ts'
import { calls } from './api/calls.ts'
import { config } from './api/config.ts'
import { pins } from './api/pins.ts'
import { results } from './api/results.ts'
import { rules } from './api/rules.ts'
import { secrets } from './api/secrets.ts'
import { servers } from './api/servers.ts'
import { status } from './api/status.ts'
import { tokens } from './api/tokens.ts'
import { tools } from './api/tools.ts'

/** One endpoint is described once: server, CLI, dashboard and API reference share it. Paths stand below `/api`. */
export const api = { status, servers, tools, pins, calls, results, tokens, rules, secrets, audit, config }
