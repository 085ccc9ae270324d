import { z } from 'zod'

export const Agent = z.object({
  id: z.string().describe('Stays with this agent; a later agent of the same name has another one'),
  name: z.string(),
  owner: z.string().optional().describe('The user behind it; without one it is the administrators'),
  description: z.string().optional(),
  createdAt: z.string(),
  tokens: z.int().describe('How many of its tokens are valid'),
})
export type Agent = z.infer<typeof Agent>
