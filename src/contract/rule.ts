import { z } from 'zod'
import { Risk } from './risk.ts'

export const RuleAction = z.enum(['allow', 'ask', 'deny'])
export type RuleAction = z.infer<typeof RuleAction>

const Scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])
export type Scalar = z.infer<typeof Scalar>

/** All given conditions must be met. A missing value meets only `not` and `exists: false`. */
export const ArgumentTest = z
  .strictObject({
    equals: Scalar.optional().describe('The value is this text, number, true, false or null'),
    in: z.array(Scalar).min(1).optional().describe('The value is one of these'),
    not: z
      .union([Scalar, z.array(Scalar).min(1)])
      .optional()
      .describe('The value is not this, or not one of these. A missing value matches'),
    glob: z
      .union([z.string(), z.array(z.string()).min(1)])
      .optional()
      .describe(
        'The value is text that matches this glob, or one of these globs. * matches any characters, including /',
      ),
    min: z.number().optional().describe('The value is a number and at least this'),
    max: z.number().optional().describe('The value is a number and at most this'),
    exists: z
      .boolean()
      .optional()
      .describe('true: the value is present, also if it is null; false: the value is missing'),
  })
  .refine((test) => Object.values(test).some((each) => each !== undefined), 'must contain at least one condition')
  .refine(({ min, max }) => min === undefined || max === undefined || min <= max, {
    message: 'never matches: min is larger than max',
    path: ['min'],
  })
  .refine((test) => test.exists !== false || !demandsValue(test), {
    message: 'never matches: a missing value cannot meet the other conditions',
    path: ['exists'],
  })
export type ArgumentTest = z.infer<typeof ArgumentTest>

function demandsValue({ equals, in: among, glob, min, max }: Record<string, unknown>): boolean {
  return [equals, among, glob, min, max].some((each) => each !== undefined)
}

/** RFC 6901, without the empty pointer: the arguments as a whole are always an object. */
export const JsonPointer = z
  .string()
  .max(1024)
  .regex(/^(\/([^~/]|~[01])*)+$/, 'must be a JSON pointer that begins with /, such as /path or /tags/0')

export const Rule = z.strictObject({
  name: z.string().max(120).optional().describe('Name of the rule, shown when the rule decides'),
  tools: z
    .union([z.string(), z.array(z.string()).min(1)])
    .default('*')
    .describe('Globs on public tool names'),
  server: z.string().optional().describe('Glob on the name of the server'),
  risk: z
    .union([Risk, z.array(Risk).min(1)])
    .optional()
    .describe('Only calls of tools with this risk'),
  principal: z.string().optional().describe('Glob on the principal that calls, such as agent:reviewer'),
  owner: z.string().optional().describe('Glob on the name of the user who owns the agent, session or run'),
  project: z.string().optional().describe('Glob on the name of the project of the agent or session'),
  arguments: z
    .record(JsonPointer, z.union([Scalar, ArgumentTest]))
    .optional()
    .describe('Conditions on arguments, by JSON pointer: a value that must be equal, or a map of conditions'),
  meta: z
    .record(JsonPointer, z.union([Scalar, ArgumentTest]))
    .optional()
    .describe('Conditions on `_meta` of the call, in the same form as `arguments`, such as /example.com~1tenant'),
  expires: z.iso
    .datetime({ offset: true, error: 'must be a time such as 2030-01-31T12:00:00Z' })
    .optional()
    .describe('The rule is ignored from this time on, such as 2030-01-31T12:00:00Z'),
  action: RuleAction.describe('Decision for a matching call'),
  approvers: z
    .string()
    .regex(/^(any|client|other|two|group:.+)$/, 'must be any, client, other, two or group:NAME')
    .default('any')
    .describe(
      'Who may answer the approval: any, client (also the person at the client of the agent; only in scopes that only administrators can change), other (not the owner of the agent), two (two different people) or group:NAME',
    ),
  reason: z.string().max(500).optional().describe('Reason of the rule, shown with the decision'),
})
export type Rule = z.infer<typeof Rule>
