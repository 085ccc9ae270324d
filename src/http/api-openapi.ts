import { Agent } from '../contract/agent.ts'
import { ErrorBody } from '../contract/api/base.ts'
import { api, door } from '../contract/api.ts'
import { Approval } from '../contract/approval.ts'
import { AuditEntry } from '../contract/audit.ts'
import { Call } from '../contract/call.ts'
import { Grant } from '../contract/grant.ts'
import { Secret } from '../contract/secret.ts'
import { Server, ServerDetail, Validation } from '../contract/server.ts'
import { Session } from '../contract/session.ts'
import { Status } from '../contract/status.ts'
import { Token } from '../contract/token.ts'
import { Tool } from '../contract/tool.ts'
import { User } from '../contract/user.ts'

/** The OpenAPI document. Its generator is loaded on first use, because it costs memory and few gateways need it. */
export async function toOpenApi(version: string): Promise<object> {
  const { OpenAPIGenerator } = await import('@orpc/openapi')
  const { ZodToJsonSchemaConverter } = await import('@orpc/zod/zod4')
  const generator = new OpenAPIGenerator({ schemaConverters: [new ZodToJsonSchemaConverter()] })
  return generator.generate(
    { ...door, ...api },
    {
      info: {
        title: 'Sallyport',
        version,
        description:
          'MCP gateway: AI agents reach all MCP servers of a team through one address. Every request needs a token or a sign-in.',
      },
      servers: [{ url: '/api' }],
      security: [{ bearer: [] }, { cookie: [] }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: '`sallyport tokens create --agent NAME` creates a token',
          },
          cookie: {
            type: 'apiKey',
            in: 'cookie',
            name: '__Host-sallyport-ID',
            description: 'Set by `POST /sign-in`; ID is the id of the gateway',
          },
        },
        responses: {
          Error: {
            description: 'An error with a hint what to do; the status depends on the code',
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
          },
        },
      },
      commonSchemas: Object.fromEntries(
        Object.entries({
          Error: ErrorBody,
          Status,
          Server,
          ServerDetail,
          Validation,
          Tool,
          Call,
          Approval,
          Grant,
          Token,
          User,
          Agent,
          Session,
          Secret,
          AuditEntry,
        }).map(([name, schema]) => [name, { schema, strategy: 'output' }]),
      ),
    },
  )
}
