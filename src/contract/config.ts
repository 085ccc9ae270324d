import { z } from 'zod'
import { Rule } from './rule.ts'
import { Pinning, ServerDefinition, ServerName, ServerPatch } from './server.ts'
import { Webhook } from './webhook.ts'

export const Listen = z.strictObject({
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on'),
  port: z.int().min(0).max(65_535).default(4777).describe('Port to listen on; 0 takes a free one'),
  publicUrl: z.url().optional().describe('Address by which people and agents reach this gateway'),
  allowedHosts: z.array(z.string()).default([]).describe('Further values of the Host header to answer to'),
  trustedProxies: z.array(z.string()).default([]).describe('Addresses whose X-Forwarded-* headers count'),
  tls: z
    .strictObject({
      cert: z.string().default('').describe('File with the certificate chain, PEM'),
      key: z.string().default('').describe('File with the private key, PEM'),
    })
    .optional()
    .describe('Serve HTTPS'),
  keepAlive: z
    .int()
    .min(1000)
    .max(600_000)
    .default(65_000)
    .describe('Milliseconds for which an idle connection is kept; more than a proxy in front keeps it'),
  ready: z
    .int()
    .min(0)
    .default(5000)
    .describe('Milliseconds after which /readyz answers 200 although servers are still connecting for the first time'),
})
export type Listen = z.infer<typeof Listen>

export const Toolset = z.strictObject({
  description: z.string().optional().describe('What this choice is for'),
  servers: z.array(z.string()).default(['*']).describe('Globs on names of servers'),
  tools: z.array(z.string()).default(['*']).describe('Globs on public tool names'),
})
export type Toolset = z.infer<typeof Toolset>

/**
 * An entry in a later scope: a whole definition, or a patch on the same name in an earlier one.
 * Kept as it was stated, because a default filled in here would override what the earlier scope says.
 */
export const ScopedServer = ServerPatch
export type ScopedServer = z.infer<typeof ScopedServer>

const scoped = {
  servers: z.record(ServerName, ScopedServer).default({}).describe('Servers that are added, changed or switched off'),
  rules: z.array(Rule).default([]).describe('Rules of this scope'),
}

export const Project = z.strictObject({
  owners: z.array(z.string()).default([]).describe('Users who may change this project'),
  ...scoped,
})
export type Project = z.infer<typeof Project>

/** What `limits` says for everyone, said for one. */
export const AgentLimits = z.strictObject({
  callsPerMinute: z.int().min(1).optional().describe('Calls of this agent in a minute'),
  concurrent: z.int().min(1).optional().describe('Calls of this agent at the same time'),
  pending: z.int().min(1).optional().describe('Waiting questions of this agent'),
})
export type AgentLimits = z.infer<typeof AgentLimits>

export const AgentSettings = z.strictObject({
  project: z.string().optional().describe('Project whose settings this agent inherits'),
  ...scoped,
  limits: AgentLimits.optional().describe('Instead of those that `limits` has for everyone'),
})
export type AgentSettings = z.infer<typeof AgentSettings>

export const UserSettings = z.strictObject(scoped)
export type UserSettings = z.infer<typeof UserSettings>

/** What those may add who are no administrators: members for themselves, owners for their projects. */
export const Members = z.strictObject({
  transports: z
    .array(z.enum(['http', 'sse']))
    .default(['http', 'sse'])
    .describe('Transports that members and owners of projects may add; commands are for administrators alone'),
  hosts: z
    .array(z.string().min(1))
    .default(['*'])
    .describe('Globs on the hosts that they may name; private addresses need `egress.allow` as well'),
  servers: z
    .int()
    .min(0)
    .default(50)
    .describe('Entries that one user, one session or one project with owners may have, overrides included'),
})
export type Members = z.infer<typeof Members>

export const Limits = z.strictObject({
  result: z.int().min(1024).default(262_144).describe('Characters of text in a result before it is cut'),
  kept: z
    .int()
    .min(1000)
    .default(600_000)
    .describe('Milliseconds for which the rest of a result that was cut is kept after its last use'),
  message: z.int().min(65_536).default(16_777_216).describe('Bytes of one message from a server'),
  request: z.int().min(1024).default(8_388_608).describe('Bytes of one request from an agent'),
  tools: z.int().min(1).default(20_000).describe('Tools of one server'),
  pending: z.int().min(1).default(10).describe('Waiting questions of one principal'),
  approvalExpiry: z.int().min(1000).default(600_000).describe('Milliseconds until an unanswered question expires'),
  hold: z
    .int()
    .min(0)
    .default(25_000)
    .describe('Milliseconds that a call is held open for a person where the client shows no progress'),
  callsPerMinute: z.int().min(1).default(600).describe('Calls of one principal in a minute'),
  concurrent: z
    .int()
    .min(1)
    .default(64)
    .describe('Calls of one principal at the same time; a call counts until its answer has been read'),
  buffered: z
    .int()
    .min(65_536)
    .default(67_108_864)
    .describe('Bytes of requests and unread answers that are buffered for one principal'),
  drain: z
    .int()
    .min(1000)
    .default(60_000)
    .describe('Milliseconds in which a client may read nothing of an answer before its connection is closed'),
  changesPerMinute: z
    .int()
    .min(1)
    .default(120)
    .describe(
      'Changes that one user may make over REST, the CLI or the dashboard in a minute; administrators ten times as many',
    ),
  firstList: z
    .int()
    .min(0)
    .default(2000)
    .describe('Milliseconds for which a new server may delay the lists of agents while it connects'),
  grace: z
    .int()
    .min(0)
    .default(5000)
    .describe('Milliseconds that calls under way may still take when the gateway stops'),
})
export type Limits = z.infer<typeof Limits>

export const AuditSettings = z.strictObject({
  anchors: z
    .strictObject({
      file: z
        .string()
        .min(1)
        .optional()
        .describe(
          'A further file that anchors are appended to, seen from the configuration; best where a thief of the data cannot write',
        ),
      webhook: z.url().optional().describe('Address that every anchor is posted to, as JSON'),
      every: z.int().min(1000).default(60_000).describe('Milliseconds after which new entries are anchored'),
      entries: z
        .int()
        .min(1)
        .default(1000)
        .describe('New entries that are anchored at once, however little time has passed'),
    })
    .prefault({})
    .describe('Where the gateway writes, outside its database, how far the record reaches'),
  retention: z.int().min(1).optional().describe('Days that entries of the record are kept; without it for ever'),
})
export type AuditSettings = z.infer<typeof AuditSettings>

/** The whole of `sallyport.yaml`. */
export const Config = z.strictObject({
  $schema: z.string().optional().describe('Address of the JSON Schema, for editors'),
  listen: Listen.prefault({}).describe('Where the gateway listens'),
  naming: z
    .string()
    .default('{server}_{tool}')
    .describe('Pattern of public tool names: {server} and {tool} once each, with a _ between them'),
  describe: z
    .string()
    .default('{description}')
    .describe('Pattern of tool descriptions, of {server}, {tool} and {description}'),
  environment: z
    .array(z.string())
    .default([])
    .describe('Environment variables that ${NAME} may read; never SALLYPORT_*'),
  pinning: Pinning.default('baseline'),
  egress: z
    .strictObject({
      allow: z.array(z.string()).default([]).describe('Private addresses, networks and host names that may be reached'),
    })
    .prefault({})
    .describe("Private addresses that servers other than an administrator's own may reach"),
  members: Members.prefault({}).describe('Which servers members and owners of projects may add'),
  servers: z.record(ServerName, ServerDefinition).default({}).describe('The MCP servers of this gateway'),
  rules: z.array(Rule).default([]).describe('Within a scope the last match decides; across scopes the strictest wins'),
  toolsets: z.record(ServerName, Toolset).default({}).describe('Named choices of servers and tools'),
  projects: z
    .record(ServerName, Project)
    .default({})
    .describe('Settings that all sessions of one piece of work inherit'),
  agents: z.record(ServerName, AgentSettings).default({}).describe('Settings of single agents'),
  users: z.record(ServerName, UserSettings).default({}).describe('Settings of single users and of their agents'),
  limits: Limits.prefault({}).describe('Bounds of sizes, counts and times'),
  audit: AuditSettings.prefault({}).describe('How the record is proven and how long it is kept'),
  webhooks: z.record(ServerName, Webhook).default({}).describe('Addresses that hear of events, signed'),
})
export type Config = z.infer<typeof Config>
