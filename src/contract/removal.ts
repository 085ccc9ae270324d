import { z } from 'zod'

export const RemovalItem = z.object({
  noun: z.string().describe('Kind of the item, such as agent, session, token, secret, server or grant'),
  name: z.string(),
  effect: z
    .string()
    .optional()
    .describe('What happens to the item if it is not removed, such as: ends, is revoked, keeps its settings'),
})
export type RemovalItem = z.infer<typeof RemovalItem>

/** Everything that is removed or ended together with a user, an agent or a project. */
export const RemovalPlan = z.object({
  kind: z.enum(['user', 'agent', 'project']),
  name: z.string(),
  items: z.array(RemovalItem),
})
export type RemovalPlan = z.infer<typeof RemovalPlan>

export const Removed = RemovalPlan.extend({
  removed: z.string().describe('Name of the removed user, agent or project'),
})
export type Removed = z.infer<typeof Removed>
