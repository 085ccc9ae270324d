import { z } from 'zod'

export const Agent = z.object({
  id: z.string().describe('Never changes. A later agent with the same name has a different id'),
  name: z.string(),
  owner: z
    .string()
    .optional()
    .describe('The user who owns the agent. If missing, the agent belongs to the administrators'),
  description: z.string().optional(),
  createdAt: z.string(),
  tokens: z.int().describe('Number of valid tokens of this agent'),
})
export type Agent = z.infer<typeof Agent>
