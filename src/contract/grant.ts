import { z } from 'zod'
import { Rule } from './rule.ts'

const conditions = Rule.shape.arguments.unwrap()

/** A standing permission with limits: which tools, which arguments, how many calls, until when. */
export const Grant = z.object({
  id: z.string(),
  tools: z.string().describe('Glob on public tool names; a tool of risk danger only by its exact name'),
  arguments: conditions.optional().describe('Conditions by JSON pointer, as in a rule; all of them must hold'),
  exactly: z.string().optional().describe('Only for calls with exactly these arguments: their hash'),
  meta: z
    .string()
    .optional()
    .describe('Only for calls with exactly this `_meta`: its hash. Absent: only for calls without `_meta`'),
  principal: z.string().optional().describe('Who may use it, such as agent:reviewer'),
  principalId: z.string().optional().describe('The id of that principal: a later one of the same name cannot use it'),
  scope: z.string().optional().describe('Or everybody in this scope, such as project:shop'),
  definitions: z
    .record(z.string(), z.string())
    .optional()
    .describe('The definition of each tool at that time; void for another one'),
  budget: z.int().describe('How many calls it permits'),
  used: z.int(),
  expiresAt: z.string(),
  reason: z.string().optional(),
  givenBy: z.string(),
  giverId: z.string().optional().describe('The id of the user who gave it'),
  givenAt: z.string(),
  lastUsedAt: z.string().optional(),
  revokedAt: z.string().optional(),
  revokedBy: z.string().optional(),
})
export type Grant = z.infer<typeof Grant>

/** What a grant that is given with an answer covers: this exact call, calls that share some arguments, or the tool. */
export const GrantWish = z.strictObject({
  covers: z.enum(['call', 'shape', 'tool']),
  same: z
    .array(z.string())
    .max(50)
    .optional()
    .describe('With `shape`: JSON pointers of the arguments that must be the same; the others are free'),
  budget: z.int().min(1).max(10_000).describe('How many further calls'),
  minutes: z.int().min(1).max(43_200).describe('For how long'),
})
export type GrantWish = z.infer<typeof GrantWish>

/** A grant that a person gives without a question. */
export const NewGrant = z.strictObject({
  tools: z.string().min(1).max(256).describe('Glob on public tool names; danger only by its exact name'),
  arguments: conditions.optional().describe('Conditions by JSON pointer, as in a rule'),
  principal: z.string().optional().describe('Who may use it, such as agent:reviewer'),
  scope: z.string().optional().describe('Or everybody in this scope, such as project:shop'),
  budget: z.int().min(1).max(10_000),
  expiresAt: z.iso.datetime({ offset: true }),
  reason: z.string().max(500).optional(),
})
export type NewGrant = z.infer<typeof NewGrant>
