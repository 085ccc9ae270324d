import { z } from 'zod'
import { Rule } from './rule.ts'

const conditions = Rule.shape.arguments.unwrap()

/** A permission for further calls without approval, limited by tools, arguments, number of calls and expiry. */
export const Grant = z.object({
  id: z.string(),
  tools: z.string().describe('Glob on public tool names. A tool of risk danger matches only by its exact name'),
  arguments: conditions.optional().describe('Conditions by JSON pointer, as in a rule. All of them must be met'),
  exactly: z
    .string()
    .optional()
    .describe('Hash of arguments: the grant is only for calls with exactly these arguments'),
  meta: z
    .string()
    .optional()
    .describe(
      'Hash of `_meta`: the grant is only for calls with exactly this `_meta`. If missing, only for calls without `_meta`',
    ),
  principal: z.string().optional().describe('Principal that may use the grant, such as agent:reviewer'),
  principalId: z
    .string()
    .optional()
    .describe('The id of that principal. A later principal with the same name cannot use the grant'),
  scope: z
    .string()
    .optional()
    .describe('Instead of a principal: all principals in this scope may use the grant, such as project:shop'),
  definitions: z
    .record(z.string(), z.string())
    .optional()
    .describe(
      'Hash of the definition of each tool when the grant was given. The grant does not apply to other definitions',
    ),
  budget: z.int().describe('Number of calls that the grant allows'),
  used: z.int(),
  expiresAt: z.string(),
  reason: z.string().optional(),
  givenBy: z.string(),
  giverId: z.string().optional().describe('The id of the user who gave the grant'),
  givenAt: z.string(),
  lastUsedAt: z.string().optional(),
  revokedAt: z.string().optional(),
  revokedBy: z.string().optional(),
})
export type Grant = z.infer<typeof Grant>

/** A grant that is given with an answer. It covers this exact call, calls with some of the same arguments, or the tool. */
export const GrantWish = z.strictObject({
  covers: z.enum(['call', 'shape', 'tool']),
  same: z
    .array(z.string())
    .max(50)
    .optional()
    .describe('With `shape`: JSON pointers of the arguments that must be the same. Other arguments can have any value'),
  budget: z.int().min(1).max(10_000).describe('Number of further calls'),
  minutes: z.int().min(1).max(43_200).describe('Minutes until the grant expires'),
})
export type GrantWish = z.infer<typeof GrantWish>

/** A grant that a person gives without an approval. */
export const NewGrant = z.strictObject({
  tools: z
    .string()
    .min(1)
    .max(256)
    .describe('Glob on public tool names. A tool of risk danger must be given by its exact name'),
  arguments: conditions.optional().describe('Conditions by JSON pointer, as in a rule'),
  principal: z.string().optional().describe('Principal that may use the grant, such as agent:reviewer'),
  scope: z
    .string()
    .optional()
    .describe('Instead of a principal: all principals in this scope may use the grant, such as project:shop'),
  budget: z.int().min(1).max(10_000).describe('Number of calls that the grant allows'),
  expiresAt: z.iso.datetime({ offset: true }),
  reason: z.string().max(500).optional(),
})
export type NewGrant = z.infer<typeof NewGrant>
