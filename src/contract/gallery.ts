import { z } from 'zod'
import { Risk } from './risk.ts'
import { SecretName } from './secret.ts'
import { ServerTitle } from './server.ts'

/** Also the usual name of the server, so the characters are those of server names. */
export const GalleryId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.-]{0,63}$/, 'must be 1 to 64 lower-case letters, digits, "." or "-"')
  .refine((id) => id !== 'sallyport', 'is reserved for the gateway')

/** Links are shown in browsers, so other schemes, such as `javascript:`, are refused. */
const Link = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .describe('An http or https address')

export const GalleryVariable = z.strictObject({
  name: SecretName.describe('The name in ${NAME}. A secret or a listed variable of this name is used if it exists'),
  title: z.string().min(1).max(128).describe('Short label for people'),
  description: z.string().max(1024).optional().describe('What the value is'),
  secret: z.boolean().describe('Whether the value is stored as a secret. Other values are written to the definition'),
  required: z
    .boolean()
    .default(true)
    .describe('false: headers, variables and arguments that need the value are left out if it is missing'),
  default: z.string().min(1).max(2048).optional().describe('Value if none is given'),
  example: z.string().max(256).optional().describe('An example of a value'),
  where: Link.optional().describe('Where to get the value'),
})
export type GalleryVariable = z.infer<typeof GalleryVariable>

/** How the address or the program identifies its user. `oauth` is information only. */
export const GalleryAuth = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('none').describe('No sign-in') }),
  z.strictObject({ kind: z.literal('bearer').describe('A token in the header Authorization') }),
  z.strictObject({
    kind: z.literal('header').describe('A value in a header'),
    header: z.string().min(1).max(128).describe('Name of the header'),
  }),
  z.strictObject({ kind: z.literal('environment').describe('A value in an environment variable of the program') }),
  z.strictObject({
    kind: z.literal('oauth').describe('A sign-in in the browser'),
    registration: z
      .enum(['dcr', 'cimd', 'preregistered', 'unknown'])
      .describe(
        'How a program registers. dcr: dynamically; cimd: by a client metadata document; preregistered: somebody creates an app first',
      ),
    note: z.string().max(512).optional().describe('What to do before the first sign-in'),
  }),
])
export type GalleryAuth = z.infer<typeof GalleryAuth>

const Texts = z.record(z.string().min(1).max(128), z.string().max(2048)).default({})

/** Entries are shown to all users, so these values must be templates. */
const sensitive = /authorization|cookie|key|token|secret|password/i

function refuseLiterals(values: Readonly<Record<string, string>>, context: z.RefinementCtx): void {
  for (const [name, value] of Object.entries(values)) {
    if (!sensitive.test(name) || value.includes('${')) continue
    context.addIssue({ code: 'custom', path: [name], message: 'must contain ${NAME}: all users can read the gallery' })
  }
}

const stdio = {
  transport: z.literal('stdio').describe('A program on the machine of the gateway'),
  command: z.string().min(1).max(1024).describe('Program to start'),
  args: z.array(z.string().max(2048)).max(64).default([]).describe('Arguments; may contain ${NAME}'),
  env: Texts.superRefine(refuseLiterals).describe('Environment variables; may contain ${NAME}'),
}
const remote = {
  url: z.string().min(1).max(2048).describe('Address of the server; may contain ${NAME}'),
  headers: Texts.superRefine(refuseLiterals).describe('Headers; may contain ${NAME}'),
}
const common = {
  id: z
    .string()
    .regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 lower-case letters, digits or "-"')
    .describe('Name of this way to connect, such as remote or npx'),
  title: z.string().min(1).max(128).describe('Short label for people'),
  variables: z.array(GalleryVariable).max(32).default([]).describe('Values that somebody must provide'),
  auth: z.array(GalleryAuth).max(8).default([]).describe('Ways to sign in that the server supports'),
  instance: z
    .enum(['shared', 'agent', 'session', 'call'])
    .optional()
    .describe('Suggestion: who should share one running server. Information only'),
  isolation: z
    .enum(['none', 'sandbox'])
    .optional()
    .describe('Suggestion: where the program should run. Information only'),
  egress: z.array(z.string().min(1).max(253)).max(32).default([]).describe('Hosts that the server needs'),
  note: z.string().max(1024).optional().describe('What to know before connecting'),
  started: z
    .strictObject({
      when: z.iso.date().describe('Day of the test'),
      version: z.string().min(1).max(64).describe('Version of the package'),
      tools: z.int().min(0).describe('Number of tools that it listed'),
      values: z.record(z.string(), z.string()).optional().describe('Values of the test. {folder} is an empty folder'),
    })
    .optional()
    .describe('The result of a test that started the program without an account'),
}

/** One way to connect. `${NAME}` in its texts refers to `variables`. */
export const GalleryConnection = z.discriminatedUnion('transport', [
  z.strictObject({ ...common, ...stdio }),
  z.strictObject({ ...common, transport: z.literal('http').describe('Streamable HTTP'), ...remote }),
  z.strictObject({ ...common, transport: z.literal('sse').describe('The old HTTP+SSE transport'), ...remote }),
])
export type GalleryConnection = z.infer<typeof GalleryConnection>

/** Suggested risks are only ever higher than what applies without them. */
const Raised = Risk.exclude(['read'])

const about = {
  title: ServerTitle.describe('Name for people'),
  purpose: z.string().min(1).max(200).describe('What the server is for, in one sentence'),
  category: z
    .string()
    .regex(/^[a-z][a-z-]{0,31}$/, 'must be lower-case letters and "-"')
    .default('other')
    .describe('Category, such as database'),
  vendor: z.string().max(128).optional().describe('Who makes the server'),
  official: z.boolean().default(false).describe('Whether the maker of the service makes the server'),
  connections: z
    .array(GalleryConnection)
    .min(1)
    .max(16)
    .refine(hasUniqueIds, 'must have different ids')
    .describe('Ways to connect; the first is the default'),
  risk: z
    .strictObject({
      default: Raised.optional().describe('Suggested `defaultRisk`'),
      tools: z.record(z.string().min(1).max(128), Raised).default({}).describe('Suggested risks by original tool name'),
      note: z.string().max(512).optional().describe('What the tools can do'),
    })
    .prefault({})
    .describe('Suggested risks. They are written to the definition when an administrator adds the server'),
  guidance: z.string().max(4096).optional().describe('Steps for people'),
  docs: Link.optional().describe('Documentation of the server'),
}

export const Verified = z.strictObject({
  how: z
    .enum(['started', 'documentation'])
    .describe('started: the server was started and listed its tools. documentation: read in a document'),
  when: z
    .string()
    .regex(/^\d{4}(-\d\d){0,2}$/, 'must be a year, a month or a day')
    .describe('Date of the check'),
  source: z.string().min(1).max(1024).describe('Package or document'),
})
export type Verified = z.infer<typeof Verified>

/** An entry that the operator writes in the configuration, under its id. */
export const OwnGalleryEntry = z.strictObject({
  ...about,
  verified: Verified.optional().describe('How the facts of the entry were checked'),
})
export type OwnGalleryEntry = z.infer<typeof OwnGalleryEntry>

/** An entry of the gallery: an MCP server, and what is needed to add it. */
export const GalleryEntry = z.strictObject({
  id: GalleryId,
  ...about,
  verified: Verified.optional().describe('How the facts of the entry were checked'),
})
export type GalleryEntry = z.infer<typeof GalleryEntry>

/** An entry in lists. */
export const GallerySummary = GalleryEntry.pick({
  id: true,
  title: true,
  purpose: true,
  category: true,
  vendor: true,
  official: true,
}).extend({
  own: z.boolean().describe('Whether the entry is from the configuration of this gateway'),
  connections: z.array(z.object({ id: z.string(), title: z.string(), transport: z.enum(['stdio', 'http', 'sse']) })),
})
export type GallerySummary = z.infer<typeof GallerySummary>

/** One entry with everything that is known about it. */
export const GalleryDetail = z.object({ ...GalleryEntry.shape, own: GallerySummary.shape.own })
export type GalleryDetail = z.infer<typeof GalleryDetail>

/**
 * Where the value of a variable comes from. `given`: from the request. `stored`: a secret or a listed environment variable
 * exists. `refused`: a secret exists, but it is bound to other hosts or servers.
 */
export const VariableState = z.enum(['given', 'stored', 'default', 'missing', 'refused', 'unset'])
export type VariableState = z.infer<typeof VariableState>

export const PlannedVariable = GalleryVariable.extend({
  state: VariableState,
  because: z.string().optional().describe('Why an existing secret cannot be used'),
})
export type PlannedVariable = z.infer<typeof PlannedVariable>

/** What an entry would add, and what is missing. */
export const GalleryPlan = z.object({
  id: z.string().describe('Id of the entry, or name in the registry'),
  name: z.string().describe('Name of the server'),
  scope: z.string(),
  connection: z.string().describe('Id of the way to connect'),
  variables: z.array(PlannedVariable),
  missing: z.array(z.string()).describe('Required variables without a value'),
  definition: z.unknown().describe('The definition that would be saved; absent while values are missing').optional(),
  notes: z.array(z.string()),
})
export type GalleryPlan = z.infer<typeof GalleryPlan>

function hasUniqueIds(connections: readonly { readonly id: string }[]): boolean {
  return new Set(connections.map(({ id }) => id)).size === connections.length
}
