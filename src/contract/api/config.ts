import { z } from 'zod'
import { allUsers, operators, readers } from '../access.ts'
import { ConnectionState, ServerFailure } from '../server.ts'
import { ServerFile } from '../server-file.ts'
import { AgentName } from '../token.ts'
import { ListedTool } from '../tool.ts'
import { endpoint, page } from './base.ts'

/** A server with its effective values and the scope of each value. `scope` is the scope of the server. */
export const EffectiveServer = z.object({
  name: z.string(),
  scope: z.string(),
  definition: z.unknown().describe('As configured; ${NAME} is not resolved'),
  origins: z.record(z.string(), z.string()).describe('The scope of each value'),
  state: ConnectionState.optional().describe('Only with `include=state`'),
  error: ServerFailure.optional().describe('Why the server is not connected; only with `include=state`'),
  tools: z.array(ListedTool).optional().describe('The tools with annotations and risk; only with `include=tools`'),
})
export type EffectiveServer = z.infer<typeof EffectiveServer>

export const ShownConfig = z.object({
  file: z.string().describe('The configuration file'),
  config: z.unknown().describe('As configured, with defaults; ${NAME} is not resolved'),
  problems: z
    .array(z.string())
    .describe('Problems in the current file. If there are any, the last valid configuration stays active'),
})
export type ShownConfig = z.infer<typeof ShownConfig>

export const config = {
  show: endpoint(readers)
    .route({ method: 'GET', path: '/config', tags: ['config'], summary: 'Get the configuration of the file' })
    .output(ShownConfig),
  effective: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/config/effective',
      tags: ['config'],
      summary: 'Get the effective servers of an agent, a user, a session or a project, with the scope of each value',
    })
    .input(
      z
        .strictObject({
          agent: AgentName.optional(),
          user: AgentName.optional(),
          session: AgentName.optional(),
          project: AgentName.optional(),
          include: z
            .enum(['state', 'tools', 'state,tools', 'tools,state'])
            .optional()
            .describe('Return the state of each server, its tools, or both'),
        })
        .refine(
          ({ include: _include, ...of }) => Object.values(of).filter((name) => name !== undefined).length < 2,
          'give only one of agent, user, session and project',
        ),
    )
    .output(z.object({ servers: z.array(EffectiveServer) })),
  files: endpoint(readers)
    .route({
      method: 'GET',
      path: '/config/files',
      tags: ['config'],
      summary: 'Get the server file that the gateway reads in addition to the configuration, and what waits in it',
    })
    .output(page(ServerFile)),
  trust: endpoint(operators)
    .route({
      method: 'POST',
      path: '/config/files/trust',
      tags: ['config'],
      summary: 'Confirm the content of a server file. Its programs then start with the rights of the gateway',
    })
    .input(
      z.strictObject({
        file: z.string().describe('The path of the file, as the list contains it'),
        hash: z.string().describe('`hash` of the content that was looked at'),
      }),
    )
    .output(ServerFile),
}
