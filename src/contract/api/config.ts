import { z } from 'zod'
import { allUsers, onlookers } from '../access.ts'
import { AgentName } from '../token.ts'
import { endpoint } from './base.ts'

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

export const config = {
  show: endpoint(onlookers)
    .route({ method: 'GET', path: '/config', tags: ['config'], summary: 'The configuration as written' })
    .output(ShownConfig),
  effective: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/config/effective',
      tags: ['config'],
      summary:
        'The servers that hold for an agent, a user, a session or a project, and which scope each value came from',
    })
    .input(
      z
        .strictObject({
          agent: AgentName.optional(),
          user: AgentName.optional(),
          session: AgentName.optional(),
          project: AgentName.optional(),
        })
        .refine((of) => Object.values(of).filter((name) => name !== undefined).length < 2, 'name only one of them'),
    )
    .output(z.object({ servers: z.array(EffectiveServer) })),
}
