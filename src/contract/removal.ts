import { z } from 'zod'

export const RemovalItem = z.object({
  noun: z.string().describe('What it is, such as agent, session, token, secret, server or grant'),
  name: z.string(),
  effect: z
    .string()
    .optional()
    .describe('What happens to it where that is not removal, such as: ends, is revoked, keeps its settings'),
})
export type RemovalItem = z.infer<typeof RemovalItem>

/** What the removal of a user, an agent or a project takes along. */
export const RemovalPlan = z.object({
  kind: z.enum(['user', 'agent', 'project']),
  name: z.string(),
  items: z.array(RemovalItem),
})
export type RemovalPlan = z.infer<typeof RemovalPlan>

export const Removed = RemovalPlan.extend({ removed: z.string().describe('The name') })
export type Removed = z.infer<typeof Removed>
