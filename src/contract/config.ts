import { z } from 'zod'
import { GalleryId, OwnGalleryEntry } from './gallery.ts'
import { RegistrySettings } from './registry.ts'
import { Rule } from './rule.ts'
import { Pinning, ServerDefinition, ServerName, ServerPatch, ServerTitle } from './server.ts'
import { Webhook } from './webhook.ts'

export const Listen = z.strictObject({
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on'),
  port: z.int().min(0).max(65_535).default(4777).describe('Port to listen on; 0 selects a free port'),
  publicUrl: z.url().optional().describe('Address at which people and agents reach this gateway'),
  allowedHosts: z.array(z.string()).default([]).describe('Further values of the Host header that are accepted'),
  trustedProxies: z
    .array(z.string())
    .default([])
    .describe('Addresses of proxies whose X-Forwarded-* headers are trusted'),
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
    .describe(
      'Milliseconds after which an idle TCP connection is closed. Set it higher than the same time limit of a proxy in front',
    ),
  ready: z
    .int()
    .min(0)
    .default(5000)
    .describe('Milliseconds after which /readyz answers 200 although servers are still connecting for the first time'),
})
export type Listen = z.infer<typeof Listen>

export const Toolset = z.strictObject({
  description: z.string().optional().describe('What this toolset is for'),
  servers: z.array(z.string()).default(['*']).describe('Globs on names of servers'),
  tools: z.array(z.string()).default(['*']).describe('Globs on public tool names'),
})
export type Toolset = z.infer<typeof Toolset>

/**
 * An entry in a later scope: a complete definition, or changes of the server with the same name in an earlier scope.
 * Defaults are not filled in here, because a default would override the value of the earlier scope.
 */
export const ScopedServer = ServerPatch
export type ScopedServer = z.infer<typeof ScopedServer>

const scoped = {
  servers: z.record(ServerName, ScopedServer).default({}).describe('Servers that this scope adds, changes or disables'),
  rules: z.array(Rule).default([]).describe('Rules of this scope'),
}

/** A file of servers in a folder on the machine of the gateway, such as the clone of a repository. */
export const Repository = z.strictObject({
  path: z
    .string()
    .max(1024)
    .regex(/^(\/|[A-Za-z]:[\\/])/, 'must be an absolute path')
    .refine((path) => !hasUpward(path), 'must not contain ..')
    .describe('Absolute path of the repository on the machine of the gateway'),
  file: z
    .string()
    .min(1)
    .max(512)
    .refine((file) => !/^([\\/]|[A-Za-z]:)/.test(file), 'must be a relative path')
    .refine((file) => !hasUpward(file), 'must not contain ..')
    .default('.mcp.json')
    .describe('Path of the file with the servers, relative to `path`. Links are not followed'),
})
export type Repository = z.infer<typeof Repository>

function hasUpward(path: string): boolean {
  return path.includes('\0') || path.split(/[\\/]/).includes('..')
}

export const Project = z.strictObject({
  title: ServerTitle.optional().describe('Name for people, shown beside the name'),
  owners: z.array(z.string()).default([]).describe('Users who may change this project'),
  ...scoped,
  repository: Repository.optional().describe(
    'Takes servers from a file in a repository. A content of the file takes effect when an owner or an administrator accepts it. The project then has the rights of a project with owners: its entries can use only its own secrets, and its rules can only be stricter',
  ),
})
export type Project = z.infer<typeof Project>

/** Limits of one agent, which replace the values of the global `limits`. */
export const AgentLimits = z.strictObject({
  callsPerMinute: z.int().min(1).optional().describe('Maximum number of calls of this agent in a minute'),
  concurrent: z.int().min(1).optional().describe('Maximum number of calls of this agent at the same time'),
  pending: z.int().min(1).optional().describe('Maximum number of waiting approvals of this agent'),
})
export type AgentLimits = z.infer<typeof AgentLimits>

export const AgentSettings = z.strictObject({
  project: z.string().optional().describe('Project whose settings this agent inherits'),
  ...scoped,
  limits: AgentLimits.optional().describe('Limits of this agent; they replace the values of the global `limits`'),
})
export type AgentSettings = z.infer<typeof AgentSettings>

export const UserSettings = z.strictObject(scoped)
export type UserSettings = z.infer<typeof UserSettings>

/** Servers that users without the administrator role may add: members for themselves, project owners for their projects. */
export const Members = z.strictObject({
  transports: z
    .array(z.enum(['http', 'sse']))
    .default(['http', 'sse'])
    .describe(
      'Transports of servers that members and project owners may add. Only administrators can add servers with a command',
    ),
  hosts: z
    .array(z.string().min(1))
    .default(['*'])
    .describe(
      'Globs on the hosts of servers that members and project owners may add. Private addresses also need `egress.allow`',
    ),
  servers: z
    .int()
    .min(0)
    .default(50)
    .describe(
      'Maximum number of server entries of one user, one session or one project with owners, including overrides',
    ),
  trustOwn: z
    .boolean()
    .default(true)
    .describe(
      "Whether annotations of a member's own server may lower the risk of its tools, for calls of the member and of agents and sessions that the member owns and that belong to no project",
    ),
})
export type Members = z.infer<typeof Members>

export const Limits = z.strictObject({
  result: z
    .int()
    .min(1024)
    .default(262_144)
    .describe('Maximum number of characters of text in a result; longer text is cut'),
  kept: z
    .int()
    .min(1000)
    .default(600_000)
    .describe('Milliseconds after the last read until the rest of a cut result is removed'),
  message: z.int().min(65_536).default(16_777_216).describe('Maximum number of bytes of one message from a server'),
  request: z.int().min(1024).default(8_388_608).describe('Maximum number of bytes of one request from an agent'),
  tools: z.int().min(1).default(20_000).describe('Maximum number of tools of one server'),
  pending: z.int().min(1).default(10).describe('Maximum number of waiting approvals of one principal'),
  approvalExpiry: z.int().min(1000).default(600_000).describe('Milliseconds until an unanswered approval expires'),
  hold: z
    .int()
    .min(0)
    .default(25_000)
    .describe(
      'Milliseconds for which the request of a call that waits for approval is held open if the client did not request progress notifications. Then the client gets the answer that the call waits',
    ),
  callsPerMinute: z.int().min(1).default(600).describe('Maximum number of calls of one principal in a minute'),
  concurrent: z
    .int()
    .min(1)
    .default(64)
    .describe(
      'Maximum number of calls of one principal at the same time. A call is running until the client has read its answer',
    ),
  buffered: z
    .int()
    .min(65_536)
    .default(67_108_864)
    .describe('Maximum number of bytes of requests and unread answers that are buffered for one principal'),
  drain: z
    .int()
    .min(1000)
    .default(60_000)
    .describe('Milliseconds without reading any of an answer after which the TCP connection of a client is closed'),
  changesPerMinute: z
    .int()
    .min(1)
    .default(120)
    .describe(
      'Maximum number of changes of one user in a minute over REST, the CLI and the dashboard. For administrators the limit is ten times as high',
    ),
  firstList: z
    .int()
    .min(0)
    .default(2000)
    .describe('Milliseconds for which lists of tools wait for a new server to connect'),
  grace: z
    .int()
    .min(0)
    .default(5000)
    .describe('Milliseconds for which running calls may continue when the gateway stops'),
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
          'Additional file that anchors are appended to. A relative path is relative to the configuration file. Use a place that an attacker who can write the data folder cannot write',
        ),
      webhook: z.url().optional().describe('Address that every anchor is sent to, as JSON in a POST request'),
      every: z
        .int()
        .min(1000)
        .default(60_000)
        .describe('Milliseconds after which an anchor is written for new entries'),
      entries: z.int().min(1).default(1000).describe('Number of new entries after which an anchor is written at once'),
    })
    .prefault({})
    .describe('Anchors: copies of the last hashes of the audit record, stored outside the database'),
  retention: z
    .int()
    .min(1)
    .optional()
    .describe('Days after which entries of the audit record are removed; without it they are kept forever'),
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
    .describe('Pattern of tool descriptions; may contain {server}, {tool} and {description}'),
  errorsAsResults: z
    .boolean()
    .default(true)
    .describe(
      'Whether an error that a server answers to tools/call reaches agents as a failed result, which the model can read. At /mcp/s/NAME it is always the unchanged error',
    ),
  environment: z
    .array(z.string())
    .default([])
    .describe('Environment variables that ${NAME} may read. SALLYPORT_* is not allowed'),
  envFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with NAME=value lines that ${NAME} may read without listing the names. A relative path is relative to the configuration file. The file must belong to the user of the gateway, and no other user may write it',
    ),
  pinning: Pinning.default('baseline'),
  egress: z
    .strictObject({
      allow: z
        .array(z.string())
        .default([])
        .describe('Private addresses, networks and host names that these servers may have'),
    })
    .prefault({})
    .describe('Private addresses that servers of members and project owners may have'),
  members: Members.prefault({}).describe('Which servers members and project owners may add'),
  servers: z.record(ServerName, ServerDefinition).default({}).describe('The MCP servers of this gateway'),
  rules: z
    .array(Rule)
    .default([])
    .describe(
      'Rules for calls. Within a scope the last matching rule decides; across scopes the strictest decision wins',
    ),
  toolsets: z.record(ServerName, Toolset).default({}).describe('Named selections of servers and tools'),
  projects: z.record(ServerName, Project).default({}).describe('Settings that several agents and sessions share'),
  agents: z.record(ServerName, AgentSettings).default({}).describe('Settings of individual agents'),
  users: z.record(ServerName, UserSettings).default({}).describe('Settings of single users and their agents'),
  gallery: z
    .record(GalleryId, OwnGalleryEntry)
    .default({})
    .describe('Entries of the gallery. They replace built-in entries of the same id'),
  registry: RegistrySettings.prefault({}).describe(
    'Registry of MCP servers. The gateway contacts it only when an administrator searches it or adds a server from it',
  ),
  limits: Limits.prefault({}).describe('Limits on sizes, counts and times'),
  audit: AuditSettings.prefault({}).describe('Anchors and retention of the audit record'),
  webhooks: z.record(ServerName, Webhook).default({}).describe('Endpoints that receive events as signed messages'),
})
export type Config = z.infer<typeof Config>
