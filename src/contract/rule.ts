import { z } from 'zod'
import { Risk } from './risk.ts'

export const RuleAction = z.enum(['allow', 'ask', 'deny'])
export type RuleAction = z.infer<typeof RuleAction>

export const Rule = z.strictObject({
  name: z.string().max(120).optional().describe('What people see when this rule decides'),
  tools: z
    .union([z.string(), z.array(z.string()).min(1)])
    .default('*')
    .describe('Globs on public tool names'),
  server: z.string().optional().describe('Glob on the name of the server'),
  risk: z
    .union([Risk, z.array(Risk).min(1)])
    .optional()
    .describe('Only calls of this risk'),
  principal: z.string().optional().describe('Glob on who calls, such as agent:reviewer'),
  action: RuleAction.describe('What happens to a call that matches'),
  approvers: z
    .string()
    .regex(/^(any|other|group:.+)$/, 'must be any, other or group:NAME')
    .default('any')
    .describe('Who may answer: any, other (not the owner of the agent) or group:NAME'),
  reason: z.string().max(500).optional().describe('Why, shown with the decision'),
})
export type Rule = z.infer<typeof Rule>
