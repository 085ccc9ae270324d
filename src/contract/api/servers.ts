import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { Risk } from '../risk.ts'
import {
  SavedServer,
  Server,
  ServerDefinition,
  ServerDetail,
  ServerName,
  ServerOverride,
  Validation,
} from '../server.ts'
import { ListedTool, Tool } from '../tool.ts'
import { endpoint, page, paging, ScopeText } from './base.ts'

const byName = z.strictObject({ name: z.string().describe('Name of the server') })
const inScope = z.strictObject({
  scope: ScopeText.optional().describe('Scope of the server, if several scopes have a server of this name'),
})
const named = z.object({ params: byName, query: inScope.optional() })

const LogQuery = inScope.extend({
  after: z
    .string()
    .max(256)
    .optional()
    .describe('`start`, or `next` of the previous answer: return only complete lines that were written after it'),
})

/** A server in the list: with the number of its tools, or with the tools. */
export const ListedServer = Server.extend({
  tools: z.union([z.int(), z.array(ListedTool)]).describe('Number of tools; with `include=tools` the tools'),
})
export type ListedServer = z.infer<typeof ListedServer>

const ListQuery = z.strictObject({
  scope: ScopeText.optional().describe('Only servers of this scope'),
  include: z
    .literal('tools')
    .optional()
    .describe('Return the tools with annotations and risk. The list then has pages, also shorter ones than `limit`'),
  limit: paging.limit.describe('Entries per page; only used with `include`'),
  cursor: paging.cursor,
})

const Statement = z
  .discriminatedUnion('transport', [...ServerDefinition.options, ServerOverride])
  .describe('A complete definition, or in a later scope only the fields that differ from the inherited server')

const keepLiteral = z
  .boolean()
  .optional()
  .describe(
    'Administrators only: keep secrets that are written in the definition in the configuration file. Without it they are moved to the secret store',
  )

export const ServerLogs = z.object({
  lines: z.array(z.string()),
  dropped: z
    .int()
    .describe('Number of older lines that were removed. With `after`, only lines that were written after it'),
  next: z.string().describe('Value of `after` for later lines'),
})
export type ServerLogs = z.infer<typeof ServerLogs>

/** The risk of a tool, its source, and a suggestion from the name and the description of the tool. */
export const ToolRisk = z.object({
  tool: z.string().describe('Original name, given by the server'),
  name: z.string().describe('Public name'),
  description: z.string(),
  risk: Risk,
  riskFrom: Tool.shape.riskFrom,
  suggested: z
    .object({ risk: Risk, because: z.string() })
    .optional()
    .describe(
      'Suggested risk from name and description, for tools without annotations. It takes effect only when it is set',
    ),
})
export type ToolRisk = z.infer<typeof ToolRisk>

const Risks = z
  .record(z.string(), Risk)
  .refine((risks) => Object.keys(risks).length > 0, 'must contain at least one tool')

export const servers = {
  list: endpoint(allUsers)
    .route({ method: 'GET', path: '/servers', tags: ['servers'], summary: 'List servers with their states' })
    .input(ListQuery.prefault({}))
    .output(page(ListedServer)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/servers/{name}',
      tags: ['servers'],
      summary: 'Get one server with its definition and tools',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(ServerDetail),
  add: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers',
      tags: ['servers'],
      summary: 'Add a server; the answer is sent after the first attempt to connect',
      successStatus: 201,
    })
    .input(z.strictObject({ name: ServerName, definition: Statement, scope: ScopeText.optional(), keepLiteral }))
    .output(SavedServer),
  change: endpoint(members)
    .route({
      method: 'PUT',
      path: '/servers/{name}',
      tags: ['servers'],
      summary:
        'Replace the definition of a server. The answer contains the result of the first attempt to connect; the definition is saved also if it fails',
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ definition: Statement, keepLiteral }) }))
    .output(SavedServer),
  remove: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/servers/{name}',
      tags: ['servers'],
      summary: 'Remove a server',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(z.object({ removed: z.string() })),
  enable: serverAction('enable', 'Enable a server and connect to it'),
  disable: serverAction('disable', 'Disable a server: disconnect, but keep the entry'),
  reconnect: serverAction('reconnect', 'Reconnect to a server now, in any state'),
  validate: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers/validate',
      tags: ['servers'],
      summary: 'Test a definition without saving it',
    })
    .input(
      z.strictObject({
        definition: ServerDefinition,
        scope: ScopeText.optional().describe(
          'Scope of the definition. The test uses the secrets and the network access of this scope',
        ),
      }),
    )
    .output(Validation),
  validateSaved: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers/{name}/validate',
      tags: ['servers'],
      summary: 'Test a server on a separate connection, with the definition in the body or the saved definition',
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ definition: ServerDefinition.optional() }).optional() }))
    .output(Validation),
  risks: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/servers/{name}/risks',
      tags: ['servers'],
      summary: 'List the risks of the tools of a server, with suggestions for tools without annotations',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(page(ToolRisk)),
  setRisks: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers/{name}/risks',
      tags: ['servers'],
      summary: 'Set the risks of tools, by original name; the rest of the entry does not change',
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ risks: Risks }) }))
    .output(ServerDetail),
  logs: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/servers/{name}/logs',
      tags: ['servers'],
      summary: 'Get the last lines that a server wrote to standard error',
      inputStructure: 'detailed',
    })
    .input(named.extend({ query: LogQuery.optional() }))
    .output(ServerLogs),
}

function serverAction(action: 'enable' | 'disable' | 'reconnect', summary: string) {
  return endpoint(members)
    .route({
      method: 'POST',
      path: `/servers/{name}/${action}`,
      tags: ['servers'],
      summary,
      inputStructure: 'detailed',
    })
    .input(named)
    .output(ServerDetail)
}
