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

/** The description of the contract for programs. Made on first demand: its makers cost memory that few gateways need. */
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
          'The governed gate between AI agents and MCP servers. Every request needs a token or a signed-in person.',
      },
      servers: [{ url: '/api' }],
      security: [{ bearer: [] }, { cookie: [] }],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: '`sallyport tokens create --agent NAME` makes one' },
          cookie: {
            type: 'apiKey',
            in: 'cookie',
            name: '__Host-sallyport-ID',
            description: '`POST /sign-in` sets it; ID is that of the gateway',
          },
        },
        responses: {
          Error: {
            description: 'What is wrong and what to do about it; the status follows the code',
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
