import { z } from 'zod'
import { Risk } from './risk.ts'

export const RuleAction = z.enum(['allow', 'ask', 'deny'])
export type RuleAction = z.infer<typeof RuleAction>

const Scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])
export type Scalar = z.infer<typeof Scalar>

/** Everything that a condition names must hold of the value. A value that is not there fulfils only `not` and `exists: false`. */
export const ArgumentTest = z
  .strictObject({
    equals: Scalar.optional().describe('The value is this text, number, true, false or null'),
    in: z.array(Scalar).min(1).optional().describe('The value is one of these'),
    not: z
      .union([Scalar, z.array(Scalar).min(1)])
      .optional()
      .describe('The value is not this, or none of these; a value that is not there is none of them either'),
    glob: z
      .union([z.string(), z.array(z.string()).min(1)])
      .optional()
      .describe('The value is text that this glob matches, or one of these; * stands for any characters, / included'),
    min: z.number().optional().describe('The value is a number and not less than this'),
    max: z.number().optional().describe('The value is a number and not more than this'),
    exists: z.boolean().optional().describe('true: the value is there, null included; false: it is not'),
  })
  .refine((test) => Object.values(test).some((each) => each !== undefined), 'must name at least one condition')
  .refine(({ min, max }) => min === undefined || max === undefined || min <= max, {
    message: 'never matches: min is larger than max',
    path: ['min'],
  })
  .refine((test) => test.exists !== false || !demandsValue(test), {
    message: 'never matches: a value that is not there fulfils none of the other conditions',
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
  owner: z.string().optional().describe('Glob on the name of the user behind an agent, a session or a run'),
  project: z.string().optional().describe('Glob on the name of the project that the caller works for'),
  arguments: z
    .record(JsonPointer, z.union([Scalar, ArgumentTest]))
    .optional()
    .describe('Conditions on single arguments by JSON pointer: a value that must be equal, or a map of conditions'),
  meta: z
    .record(JsonPointer, z.union([Scalar, ArgumentTest]))
    .optional()
    .describe('Conditions of the same form on `_meta` of the call, such as /example.com~1tenant'),
  expires: z.iso
    .datetime({ offset: true, error: 'must be a time such as 2030-01-31T12:00:00Z' })
    .optional()
    .describe('The rule no longer counts from this time on, such as 2030-01-31T12:00:00Z'),
  action: RuleAction.describe('What happens to a call that matches'),
  approvers: z
    .string()
    .regex(/^(any|client|other|two|group:.+)$/, 'must be any, client, other, two or group:NAME')
    .default('any')
    .describe(
      'Who may answer: any, client (also whoever sits at the agent; only in scopes that administrators write), other (not the owner of the agent), two (different people) or group:NAME',
    ),
  reason: z.string().max(500).optional().describe('Why, shown with the decision'),
})
export type Rule = z.infer<typeof Rule>
