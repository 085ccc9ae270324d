import { z } from 'zod'
import { Call } from './call.ts'
import { Risk } from './risk.ts'

/**
 * A question is `waiting` until a person answers or its time is up. `approved` is an answer that has not been used;
 * `used` has run, once; `lapsed` was approved, and its time was up before the caller came back for it. `withdrawn`: what
 * it was asked for cannot run any more.
 */
export const ApprovalState = z.enum(['waiting', 'approved', 'used', 'lapsed', 'denied', 'expired', 'withdrawn'])
export type ApprovalState = z.infer<typeof ApprovalState>

export const Verdict = z.enum(['approve', 'deny'])
export type Verdict = z.infer<typeof Verdict>

/** What one person said. A rule may want two. */
export const ApprovalAnswer = z.object({
  by: z.string(),
  verdict: Verdict,
  at: z.string(),
  reason: z.string().optional(),
})
export type ApprovalAnswer = z.infer<typeof ApprovalAnswer>

/** What a waiting call needs a person for, and what they said. */
export const Approval = z.object({
  id: z.string(),
  state: ApprovalState,
  call: z.string().describe('The call that waits'),
  tool: z.string().describe('Public name'),
  server: z.string(),
  title: z.string().describe('What the agent wants, in plain words'),
  description: z.string().optional().describe('What the tool says it does, as accepted'),
  principal: z.string(),
  principalId: z
    .string()
    .optional()
    .describe('The id of the principal: after a removal its name can belong to another one'),
  owner: z.string().optional().describe('The user behind the agent'),
  arguments: z.unknown().describe('Exactly as they will be sent, masked where they hold secrets'),
  input: z
    .unknown()
    .optional()
    .describe("What goes along with the arguments, such as answers to the server's own questions; masked as they are"),
  meta: z
    .unknown()
    .optional()
    .describe('`_meta` that will be sent with the arguments, without its trace context; masked as they are'),
  hash: z.string().describe('Of all that the approval is bound to'),
  risk: Risk,
  reason: z.string().describe('Why it was asked'),
  approvers: z
    .array(z.string())
    .describe(
      'Who may answer: any, client, other, two, group:NAME; all that are named must agree. `owner` beside a group: only members who are the owner of the agent or an administrator',
    ),
  askedAt: z.string(),
  expiresAt: z.string(),
  answers: z.array(ApprovalAnswer),
  grant: z.string().optional().describe('The grant that was given with the answer'),
  withdrawnBecause: z.string().optional().describe('Why it was withdrawn'),
  endedAt: z.string().optional(),
})
export type Approval = z.infer<typeof Approval>

/** How a tool differs from what was accepted, at the time of the question. */
export const ApprovalDrift = z.object({
  kind: z.enum(['changed', 'new']).describe('new: nobody has accepted this tool yet'),
  difference: z
    .string()
    .describe('From the accepted definition to the one that the approval is bound to, field by field, as plain text'),
})
export type ApprovalDrift = z.infer<typeof ApprovalDrift>

/** How many requests are held open for the answer at this moment. */
export const ApprovalWaiting = z.object({
  requests: z.int().describe('Requests that this instance holds open for the answer'),
  complete: z.boolean().describe('False where other instances on the same database may hold further requests'),
})
export type ApprovalWaiting = z.infer<typeof ApprovalWaiting>

/** A question in full, as the page shows it. */
export const ApprovalDetail = Approval.extend({
  waiting: ApprovalWaiting.describe('Whether somebody waits for the answer. An approved call without one runs later'),
  drift: ApprovalDrift.optional().describe('Set when nobody has accepted the definition that would run'),
  before: z.object({ approved: z.int(), asked: z.int() }).describe('Earlier questions of this agent for this tool'),
  around: z
    .array(Call.pick({ id: true, tool: true, state: true, startedAt: true }))
    .describe('What this agent did shortly before'),
  barred: z.string().optional().describe('Why whoever looks may not answer it'),
})
export type ApprovalDetail = z.infer<typeof ApprovalDetail>
