import { oc } from '@orpc/contract'
import { z } from 'zod'
import { AuditEntry, AuditKind } from './audit.ts'
import { Call, CallState } from './call.ts'
import { type ScopeKey, ScopeKind } from './scope.ts'
import { Server, ServerDefinition, ServerDetail, ServerName, Validation } from './server.ts'
import { Status } from './status.ts'
import { AgentName, NewToken, Token } from './token.ts'
import { Tool } from './tool.ts'

/** The body of every error, as `toErrorBody` writes it. */
export const ErrorBody = z.object({
  error: z.object({
    code: z.string().describe('Stable; programs decide by this'),
    message: z.string().describe('What is wrong, for people'),
    hint: z.string().describe('What to do about it'),
    details: z.record(z.string(), z.unknown()).optional().describe('Facts for programs'),
  }),
})
export type ErrorBody = z.infer<typeof ErrorBody>

/** A scope as people write it. */
export const ScopeText: z.ZodType<ScopeKey> = z
  .union([z.literal('global'), z.templateLiteral([ScopeKind.exclude(['global']), ':', z.string().min(1)])], {
    error: 'must be global or KIND:NAME, such as agent:reviewer',
  })
  .describe('global or KIND:NAME, such as agent:reviewer')

function page<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    next: z.string().nullable().describe('Pass it as `cursor` for the next page; null at the end'),
  })
}

const paging = {
  limit: z.coerce.number().int().min(1).max(1000).default(50).describe('Entries per page'),
  cursor: z.string().optional().describe('`next` of the page before'),
}

const byName = z.strictObject({ name: z.string().describe('Name of the server') })
const inScope = z.strictObject({ scope: ScopeText.optional().describe('Where a name stands in several scopes') })
const named = z.object({ params: byName, query: inScope.optional() })

/** Tells how a configured value came about; `scope` is where it stands. */
export const EffectiveServer = z.object({
  name: z.string(),
  scope: z.string(),
  definition: z.unknown().describe('As configured; ${NAME} is not resolved'),
  origins: z.record(z.string(), z.string()).describe('Which scope each value came from'),
})
export type EffectiveServer = z.infer<typeof EffectiveServer>

export const ShownConfig = z.object({
  file: z.string().describe('The file the settings come from'),
  config: z.unknown().describe('As configured, with defaults; ${NAME} is not resolved'),
  problems: z.array(z.string()).describe('What is wrong with the file as it stands; the last good one is in force'),
})
export type ShownConfig = z.infer<typeof ShownConfig>

export const ServerLogs = z.object({
  lines: z.array(z.string()),
  dropped: z.int().describe('Older lines that are no longer kept'),
})
export type ServerLogs = z.infer<typeof ServerLogs>

export const CallAnswer = z.object({ call: Call, result: z.unknown().describe("The tool's result, as MCP shapes it") })
export type CallAnswer = z.infer<typeof CallAnswer>

/** An agent sees that the gateway lives and what it may use, not how it is built. */
export const StatusAnswer = z.union([Status, Status.pick({ healthy: true, version: true })])
export type StatusAnswer = z.infer<typeof StatusAnswer>

const base = oc.$route({
  spec: (operation) => ({
    ...operation,
    responses: { ...operation.responses, default: { $ref: '#/components/responses/Error' } },
  }),
})

/** One endpoint is described once: server, CLI, dashboard and API reference share it. Paths stand below `/api`. */
export const api = {
  status: base
    .route({ method: 'GET', path: '/status', tags: ['status'], summary: 'What is running, and whether it is healthy' })
    .output(StatusAnswer),

  servers: {
    list: base
      .route({ method: 'GET', path: '/servers', tags: ['servers'], summary: 'All servers with their states' })
      .output(page(Server)),
    get: base
      .route({
        method: 'GET',
        path: '/servers/{name}',
        tags: ['servers'],
        summary: 'One server with its definition and tools',
        inputStructure: 'detailed',
      })
      .input(named)
      .output(ServerDetail),
    add: base
      .route({
        method: 'POST',
        path: '/servers',
        tags: ['servers'],
        summary: 'Add a server; answers after the first attempt to connect',
        successStatus: 201,
      })
      .input(z.strictObject({ name: ServerName, definition: ServerDefinition, scope: ScopeText.optional() }))
      .output(ServerDetail),
    change: base
      .route({
        method: 'PUT',
        path: '/servers/{name}',
        tags: ['servers'],
        summary: "Replace a server's definition; answers after the first attempt to connect",
        inputStructure: 'detailed',
      })
      .input(named.extend({ body: z.strictObject({ definition: ServerDefinition }) }))
      .output(ServerDetail),
    remove: base
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
    validate: base
      .route({
        method: 'POST',
        path: '/servers/validate',
        tags: ['servers'],
        summary: 'Try a definition without saving it',
      })
      .input(z.strictObject({ definition: ServerDefinition }))
      .output(Validation),
    validateSaved: base
      .route({
        method: 'POST',
        path: '/servers/{name}/validate',
        tags: ['servers'],
        summary: 'Try a server on a connection of its own: the definition in the body, else the saved one',
        inputStructure: 'detailed',
      })
      .input(named.extend({ body: z.strictObject({ definition: ServerDefinition.optional() }).optional() }))
      .output(Validation),
    logs: base
      .route({
        method: 'GET',
        path: '/servers/{name}/logs',
        tags: ['servers'],
        summary: 'The last lines a server wrote to standard error',
        inputStructure: 'detailed',
      })
      .input(named)
      .output(ServerLogs),
  },

  tools: {
    list: base
      .route({ method: 'GET', path: '/tools', tags: ['tools'], summary: 'The tools the caller may use' })
      .input(
        z.strictObject({
          toolset: z.string().optional().describe('Only the tools of this toolset'),
          server: z.string().optional().describe('Only the tools of this server'),
          query: z
            .string()
            .max(1000)
            .optional()
            .describe('Words to look for in names and descriptions, best match first'),
        }),
      )
      .output(page(Tool)),
    get: base
      .route({
        method: 'GET',
        path: '/tools/{name}',
        tags: ['tools'],
        summary: 'One tool with its schema',
        inputStructure: 'detailed',
      })
      .input(z.object({ params: z.strictObject({ name: z.string().describe('Public name of the tool') }) }))
      .output(Tool),
    call: base
      .route({
        method: 'POST',
        path: '/tools/{name}/call',
        tags: ['tools'],
        summary: 'Run a tool',
        description:
          "A tool's own failure is a result with `isError`. 403 when denied, 429 with Retry-After over a limit.",
        inputStructure: 'detailed',
      })
      .input(
        z.object({
          params: z.strictObject({ name: z.string().describe('Public name of the tool') }),
          body: z.strictObject({
            arguments: z.record(z.string(), z.json()).default({}).describe("By the tool's input schema"),
            toolset: z.string().optional().describe('Call it as a tool of this toolset'),
          }),
        }),
      )
      .output(CallAnswer),
  },

  calls: {
    list: base
      .route({ method: 'GET', path: '/calls', tags: ['calls'], summary: 'Calls, newest first' })
      .input(
        z.strictObject({
          ...paging,
          principal: z.string().optional().describe('Only calls of this principal, such as agent:reviewer'),
          tool: z.string().optional().describe('Only calls of this tool'),
          state: CallState.optional().describe('Only calls in this state'),
        }),
      )
      .output(page(Call)),
    get: base
      .route({ method: 'GET', path: '/calls/{id}', tags: ['calls'], summary: 'One call', inputStructure: 'detailed' })
      .input(z.object({ params: z.strictObject({ id: z.string() }) }))
      .output(Call),
  },

  tokens: {
    list: base
      .route({
        method: 'GET',
        path: '/tokens',
        tags: ['tokens'],
        summary: 'Tokens of agents, without the tokens themselves',
      })
      .output(page(Token)),
    create: base
      .route({
        method: 'POST',
        path: '/tokens',
        tags: ['tokens'],
        summary: 'Make a token for an agent; the only answer that shows it',
        successStatus: 201,
      })
      .input(
        z.strictObject({
          agent: AgentName,
          expiresAt: z.iso.datetime({ offset: true }).optional().describe('The token stops working then'),
        }),
      )
      .output(NewToken),
    revoke: base
      .route({
        method: 'DELETE',
        path: '/tokens/{id}',
        tags: ['tokens'],
        summary: 'Make a token useless at once',
        inputStructure: 'detailed',
      })
      .input(z.object({ params: z.strictObject({ id: z.string() }) }))
      .output(Token),
  },

  audit: {
    list: base
      .route({ method: 'GET', path: '/audit', tags: ['audit'], summary: 'Entries of the record, newest first' })
      .input(
        z.strictObject({
          ...paging,
          principal: z.string().optional().describe('Only entries of this principal, such as agent:reviewer'),
          subject: z.string().optional().describe('Only entries about this tool or thing'),
          kind: AuditKind.optional().describe('Only entries of this kind'),
          call: z.string().optional().describe('Only entries of this call'),
        }),
      )
      .output(page(AuditEntry)),
    get: base
      .route({
        method: 'GET',
        path: '/audit/{id}',
        tags: ['audit'],
        summary: 'One entry by `instance:sequence`, or all entries of one call by its id',
        inputStructure: 'detailed',
      })
      .input(z.object({ params: z.strictObject({ id: z.string() }) }))
      .output(z.object({ entries: z.array(AuditEntry), call: Call.optional() })),
  },

  config: {
    show: base
      .route({ method: 'GET', path: '/config', tags: ['config'], summary: 'The configuration as written' })
      .output(ShownConfig),
    effective: base
      .route({
        method: 'GET',
        path: '/config/effective',
        tags: ['config'],
        summary: 'The servers that hold for an agent, and which scope each value came from',
      })
      .input(z.strictObject({ agent: AgentName.optional() }))
      .output(z.object({ servers: z.array(EffectiveServer) })),
  },
}

function serverAction(action: 'enable' | 'disable' | 'reconnect', summary: string) {
  return base
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
