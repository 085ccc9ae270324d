import { z } from 'zod'
import { Risk } from './risk.ts'
import { SetAside, Tool } from './tool.ts'

/** The characters are limited because names are part of URLs and of tool names. */
export const ServerName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'must be 1 to 64 letters, digits, ".", "-" or "_", and begin with a letter or digit',
  )
  .refine((name) => name !== 'sallyport', 'is reserved for the gateway')

/** Control and bidirectional characters could reorder or break the text around a title. */
const untidy = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

export const ServerTitle = z
  .string()
  .min(1)
  .max(128)
  .refine(
    (title) => !untidy.test(title),
    'must not contain control characters, line breaks or bidirectional characters',
  )
  .refine((title) => title.trim() === title, 'must not begin or end with a space')

export const Timeouts = z.strictObject({
  start: z
    .int()
    .min(100)
    .default(120_000)
    .describe('Milliseconds for the first start of a command that may download packages'),
  connect: z.int().min(100).default(15_000).describe('Milliseconds to connect and to list tools'),
  call: z.int().min(10).default(30_000).describe('Milliseconds that a call may take without reporting progress'),
  maximum: z
    .int()
    .min(10)
    .default(600_000)
    .describe('Milliseconds that a call may take in total, also if it reports progress'),
})
export type Timeouts = z.infer<typeof Timeouts>

/** Limits of a server or a tool for all principals together. */
export const SharedLimits = z.strictObject({
  callsPerMinute: z.int().min(1).optional().describe('Maximum number of calls in a minute, of all principals together'),
  concurrent: z
    .int()
    .min(1)
    .optional()
    .describe('Maximum number of calls at the same time, of all principals together'),
})
export type SharedLimits = z.infer<typeof SharedLimits>

export const ToolOverride = z.strictObject({
  risk: Risk.optional().describe('Risk of this tool; overrides the annotations of the server'),
  name: z.string().min(1).max(128).optional().describe('Another name for the tool'),
  description: z.string().max(4096).optional().describe('Another description for the tool'),
  limits: SharedLimits.optional().describe('Limits for calls of this tool'),
})
export type ToolOverride = z.infer<typeof ToolOverride>

export const ToolChoice = z.strictObject({
  include: z
    .array(z.string())
    .default(['*'])
    .describe('Globs on the tool names that the server uses; only matching tools are offered'),
  exclude: z.array(z.string()).default([]).describe('Globs on original tool names; matching tools are not offered'),
  override: z.record(z.string(), ToolOverride).default({}).describe('Changes of single tools, by original tool name'),
})
export type ToolChoice = z.infer<typeof ToolChoice>

/** Whether definitions that nobody has reviewed are offered. */
export const Pinning = z
  .enum(['baseline', 'strict'])
  .describe(
    'baseline: the definitions from the first connection are accepted without review. strict: a definition is not offered until somebody accepts it',
  )

const common = {
  title: ServerTitle.optional().describe('Name for people, shown beside the name of the server'),
  description: z.string().max(1024).optional().describe('What this server is for'),
  enabled: z.boolean().default(true).describe('false: keep the entry, but do not connect'),
  tools: ToolChoice.prefault({}).describe('Which tools are offered, and how'),
  defaultRisk: Risk.optional().describe('Risk of tools without annotations; write if missing'),
  trust: z
    .enum(['annotations', 'none'])
    .optional()
    .describe(
      'Whether annotations of the server may lower the risk of a tool. Default: annotations in scopes that only administrators can change, none in other scopes',
    ),
  pinning: Pinning.optional(),
  timeout: Timeouts.prefault({}).describe('Milliseconds for starting, connecting and calling'),
  limits: SharedLimits.optional().describe(
    'Limits for calls of this server. A later scope can only make them stricter',
  ),
}

export const StdioServer = z.strictObject({
  transport: z.literal('stdio').describe('A child process that communicates over standard input and output'),
  command: z.string().min(1).describe('Program to start. It runs with the rights of the gateway'),
  args: z.array(z.string()).default([]).describe('Arguments, one per entry'),
  env: z
    .record(z.string(), z.string())
    .default({})
    .describe(
      'Environment variables of the program, in addition to a minimal set and the proxy and certificate variables of the gateway',
    ),
  cwd: z.string().optional().describe('Working folder of the program. Default: a separate folder in the data folder'),
  secretsInArguments: z
    .boolean()
    .default(false)
    .describe('Allow secrets in args, where other users of the machine may see them'),
  ...common,
})
export type StdioServer = z.infer<typeof StdioServer>

/** `${NAME}` may replace the whole address or a part of it. The resulting address is checked when the value is filled in. */
const ServerUrl = z
  .string()
  .refine(
    (url) => isWebAddress(url),
    'must be a complete https:// or http:// address, such as https://mcp.example.com/mcp',
  )
  .refine(
    (url) => !/^https?:\/\/[^/?#]*@/i.test(url),
    'must not contain a user name or password; send them as a header, with ${NAME} for the secret part',
  )

function isWebAddress(url: string): boolean {
  if (/^\$\{/.test(url)) return true
  const filled = url.replace(/\$\{[^}]*\}/g, '1')
  return /^https?:\/\//i.test(filled) && URL.canParse(filled)
}

const remote = {
  url: ServerUrl.describe('Address of the server'),
  headers: z.record(z.string(), z.string()).default({}).describe('Headers sent with every request'),
  ...common,
}

export const HttpServer = z.strictObject({
  transport: z.literal('http').describe('Streamable HTTP, in any protocol revision'),
  ...remote,
})
export type HttpServer = z.infer<typeof HttpServer>

export const SseServer = z.strictObject({
  transport: z.literal('sse').describe('The old HTTP+SSE transport'),
  ...remote,
})
export type SseServer = z.infer<typeof SseServer>

export const ServerDefinition = z.discriminatedUnion('transport', [StdioServer, HttpServer, SseServer])
export type ServerDefinition = z.infer<typeof ServerDefinition>

const downloaders = new Set(['npx', 'uvx', 'uv', 'pipx', 'bunx', 'bun', 'pnpm', 'yarn', 'deno', 'docker', 'podman'])

/** The program name, if the command downloads packages before it runs them. */
export function findDownloader(definition: ServerDefinition): string | undefined {
  if (definition.transport !== 'stdio') return undefined
  const program = definition.command
    .split(/[\\/]/)
    .at(-1)
    ?.replace(/\.(cmd|exe)$/i, '')
  return program !== undefined && downloaders.has(program) ? program : undefined
}

/** The field without its default, because a later scope inherits the fields that it does not set. */
function stated<Inner extends z.ZodType>(field: z.ZodDefault<Inner>): z.ZodOptional<Inner> {
  return field
    .unwrap()
    .optional()
    .describe(field.description ?? '')
}

/** An entry in a later scope may override single fields of the server with the same name, or disable it. */
export const ServerPatch = z.strictObject({
  transport: z.enum(['stdio', 'http', 'sse']).optional().describe('How the server is reached'),
  command: StdioServer.shape.command.optional(),
  args: stated(StdioServer.shape.args),
  env: stated(StdioServer.shape.env),
  cwd: StdioServer.shape.cwd,
  secretsInArguments: stated(StdioServer.shape.secretsInArguments),
  url: HttpServer.shape.url.optional(),
  headers: stated(HttpServer.shape.headers),
  title: common.title,
  description: common.description,
  enabled: stated(common.enabled),
  tools: z
    .strictObject({
      include: stated(ToolChoice.shape.include),
      exclude: stated(ToolChoice.shape.exclude),
      override: stated(ToolChoice.shape.override),
    })
    .optional()
    .describe('Which tools are offered, and how'),
  defaultRisk: common.defaultRisk,
  trust: common.trust,
  pinning: common.pinning,
  timeout: z
    .strictObject({
      start: stated(Timeouts.shape.start),
      connect: stated(Timeouts.shape.connect),
      call: stated(Timeouts.shape.call),
      maximum: stated(Timeouts.shape.maximum),
    })
    .optional()
    .describe('Milliseconds for starting, connecting and calling'),
  limits: common.limits,
})
export type ServerPatch = z.infer<typeof ServerPatch>

/** Changes of single fields of a server in an earlier scope. A different command or url requires a complete definition. */
export const ServerOverride = ServerPatch.omit({ command: true, url: true }).extend({
  transport: z.undefined().optional(),
})
export type ServerOverride = z.infer<typeof ServerOverride>

export const ConnectionState = z.enum([
  'disabled',
  'connecting',
  'connected',
  'auth-required',
  'failed',
  'disconnected',
])
export type ConnectionState = z.infer<typeof ConnectionState>

export const FailureClass = z.enum([
  'auth',
  'timeout',
  'unreachable',
  'server',
  'protocol',
  'spawn',
  'config',
  'unknown',
])
export type FailureClass = z.infer<typeof FailureClass>

export const ServerFailure = z.object({
  code: z.string(),
  class: FailureClass,
  message: z.string(),
  hint: z.string(),
  at: z.string(),
  output: z
    .array(z.string())
    .optional()
    .describe('The last lines that the program wrote to standard error, without stack frames'),
})
export type ServerFailure = z.infer<typeof ServerFailure>

/** A server in lists and events. */
export const Server = z.object({
  id: z.string(),
  name: z.string(),
  scope: z.string(),
  file: z
    .string()
    .optional()
    .describe('The file that defines the server, if it is not the configuration. It can only be changed there'),
  transport: z.enum(['stdio', 'http', 'sse']),
  title: z.string().optional().describe('Name for people. Its author chooses it freely, so it identifies nothing'),
  description: z.string().optional(),
  enabled: z.boolean(),
  state: ConnectionState,
  since: z.string(),
  error: ServerFailure.optional(),
  lastSuccessAt: z.string().optional(),
  protocol: z.string().optional().describe('Protocol revision in use'),
  serverInfo: z.object({ name: z.string(), version: z.string() }).optional(),
  conversational: z
    .boolean()
    .optional()
    .describe(
      'True if the server asks questions during calls without naming the call, so every call gets its own connection',
    ),
  attempt: z.int().optional().describe('Number of attempts to connect since the last success'),
  nextAttemptAt: z.string().optional(),
  progress: z.string().optional().describe('Current step of a slow start'),
  tools: z.int(),
  setAside: z.int().describe('Number of tools that were set aside. The details of the server contain the reasons'),
  complete: z.boolean().describe('False if the list of tools was cut'),
  createdAt: z.string().optional().describe('When the gateway first saw this entry of the configuration'),
  updatedAt: z.string().optional().describe('When the gateway last saw a change of this entry'),
})
export type Server = z.infer<typeof Server>

/** One server with its definition and its tools. */
export const ServerDetail = Server.omit({ tools: true, setAside: true }).extend({
  definition: z.unknown().describe('As configured; ${NAME} is not resolved'),
  origins: z.record(z.string(), z.string()).describe('The scope of each value'),
  tools: z.array(Tool),
  setAside: z.array(SetAside),
})
export type ServerDetail = z.infer<typeof ServerDetail>

/** The answer to saving a definition. */
export const SavedServer = ServerDetail.extend({
  secrets: z
    .array(z.string())
    .optional()
    .describe('Names of the secrets that values of the definition were moved to; the definition refers to them'),
  warnings: z.array(z.string()).optional().describe('Problems of the saved definition'),
})
export type SavedServer = z.infer<typeof SavedServer>

/** The result of trying a definition without saving it. */
export const Validation = z.object({
  ok: z.boolean(),
  protocol: z.string().optional(),
  serverInfo: z.object({ name: z.string(), version: z.string() }).optional(),
  tools: z.array(Tool),
  setAside: z.array(SetAside),
  failure: ServerFailure.optional(),
  durationMs: z.number(),
})
export type Validation = z.infer<typeof Validation>
