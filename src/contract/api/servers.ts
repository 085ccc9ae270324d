import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { Risk } from '../risk.ts'
import { Server, ServerDefinition, ServerDetail, ServerName, ServerOverride, Validation } from '../server.ts'
import { Tool } from '../tool.ts'
import { endpoint, page, ScopeText } from './base.ts'

const byName = z.strictObject({ name: z.string().describe('Name of the server') })
const inScope = z.strictObject({ scope: ScopeText.optional().describe('Where a name stands in several scopes') })
const named = z.object({ params: byName, query: inScope.optional() })

const LogQuery = inScope.extend({
  after: z
    .string()
    .max(256)
    .optional()
    .describe('`start`, or `next` of the answer before: only finished lines that came after it'),
})

const Statement = z
  .discriminatedUnion('transport', [...ServerDefinition.options, ServerOverride])
  .describe('A whole server, or in a later scope the fields that differ from the inherited one')

export const ServerLogs = z.object({
  lines: z.array(z.string()),
  dropped: z.int().describe('Older lines that are no longer kept; with `after`, those of them that came after it'),
  next: z.string().describe('Pass it as `after` for the lines that come later'),
})
export type ServerLogs = z.infer<typeof ServerLogs>

/** A tool's risk, where it came from, and what its own words suggest. */
export const ToolRisk = z.object({
  tool: z.string().describe("The server's own name"),
  name: z.string().describe('Public name'),
  description: z.string(),
  risk: Risk,
  riskFrom: Tool.shape.riskFrom,
  suggested: z
    .object({ risk: Risk, because: z.string() })
    .optional()
    .describe('Read from name and description, for tools without annotations; nothing changes before it is accepted'),
})
export type ToolRisk = z.infer<typeof ToolRisk>

const Risks = z.record(z.string(), Risk).refine((risks) => Object.keys(risks).length > 0, 'must name at least one tool')

export const servers = {
  list: endpoint(allUsers)
    .route({ method: 'GET', path: '/servers', tags: ['servers'], summary: 'All servers with their states' })
    .input(z.strictObject({ scope: ScopeText.optional().describe('Only those of one scope') }).optional())
    .output(page(Server)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/servers/{name}',
      tags: ['servers'],
      summary: 'One server with its definition and tools',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(ServerDetail),
  add: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers',
      tags: ['servers'],
      summary: 'Add a server; answers after the first attempt to connect',
      successStatus: 201,
    })
    .input(z.strictObject({ name: ServerName, definition: Statement, scope: ScopeText.optional() }))
    .output(ServerDetail),
  change: endpoint(members)
    .route({
      method: 'PUT',
      path: '/servers/{name}',
      tags: ['servers'],
      summary: "Replace a server's definition; answers after the first attempt to connect",
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ definition: Statement }) }))
    .output(ServerDetail),
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
  enable: serverAction('enable', 'Connect a server that was switched off'),
  disable: serverAction('disable', 'Keep the entry, but disconnect'),
  reconnect: serverAction('reconnect', 'Try to connect now, whatever the state'),
  validate: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers/validate',
      tags: ['servers'],
      summary: 'Try a definition without saving it',
    })
    .input(
      z.strictObject({
        definition: ServerDefinition,
        scope: ScopeText.optional().describe('For which scope; it is tried with what that scope may use'),
      }),
    )
    .output(Validation),
  validateSaved: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers/{name}/validate',
      tags: ['servers'],
      summary: 'Try a server on a connection of its own: the definition in the body, else the saved one',
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ definition: ServerDefinition.optional() }).optional() }))
    .output(Validation),
  risks: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/servers/{name}/risks',
      tags: ['servers'],
      summary: 'The risks of its tools, with suggestions for tools without annotations',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(page(ToolRisk)),
  setRisks: endpoint(members)
    .route({
      method: 'POST',
      path: '/servers/{name}/risks',
      tags: ['servers'],
      summary: "Set the risks of some tools, by the server's own names; the rest of the entry stays",
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ risks: Risks }) }))
    .output(ServerDetail),
  logs: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/servers/{name}/logs',
      tags: ['servers'],
      summary: 'The last lines a server wrote to standard error',
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
