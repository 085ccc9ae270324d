import { z } from 'zod'
import { Call } from './call.ts'
import { Risk } from './risk.ts'

/**
 * An approval is `waiting` until a person answers or it expires. `approved`: the call may run, and has not run yet.
 * `used`: the call has run, once. `lapsed`: it was approved, but the caller did not repeat the call before the expiry.
 * `withdrawn`: the call must not run any more, for example because a rule denies it now.
 */
export const ApprovalState = z.enum(['waiting', 'approved', 'used', 'lapsed', 'denied', 'expired', 'withdrawn'])
export type ApprovalState = z.infer<typeof ApprovalState>

export const Verdict = z.enum(['approve', 'deny'])
export type Verdict = z.infer<typeof Verdict>

/** The answer of one person. A rule can require two. */
export const ApprovalAnswer = z.object({
  by: z.string(),
  verdict: Verdict,
  at: z.string(),
  reason: z.string().optional(),
})
export type ApprovalAnswer = z.infer<typeof ApprovalAnswer>

/** A call that waits for a person, and the answers. */
export const Approval = z.object({
  id: z.string(),
  state: ApprovalState,
  call: z.string().describe('The call that waits'),
  tool: z.string().describe('Public name'),
  server: z.string(),
  serverTitle: z
    .string()
    .optional()
    .describe(
      'Title of the server at the time of the request. It identifies nothing: two servers can have the same title',
    ),
  title: z.string().describe('The call in plain words'),
  description: z.string().optional().describe('The accepted description of the tool'),
  principal: z.string(),
  principalId: z
    .string()
    .optional()
    .describe('The id of the principal. After a removal another principal can have the same name'),
  owner: z.string().optional().describe('The user who owns the agent'),
  arguments: z.unknown().describe('Exactly as they will be sent, with secrets masked'),
  input: z
    .unknown()
    .optional()
    .describe(
      "Data that will be sent with the arguments, such as replies to the server's questions, with secrets masked",
    ),
  meta: z
    .unknown()
    .optional()
    .describe('`_meta` that will be sent with the arguments, without trace context, with secrets masked'),
  hash: z
    .string()
    .describe('Hash over everything that the approval is valid for: principal, tool, definition, arguments'),
  risk: Risk,
  reason: z.string().describe('Why the call needs approval'),
  approvers: z
    .array(z.string())
    .describe(
      'Who may answer: any, client, other, two, group:NAME. All listed conditions must be met. `owner` beside a group: only members who own the agent, and administrators',
    ),
  requestedAt: z.string(),
  expiresAt: z.string(),
  answers: z.array(ApprovalAnswer),
  grant: z.string().optional().describe('Id of the grant that was given with the answer'),
  withdrawnBecause: z.string().optional().describe('Why the approval was withdrawn'),
  endedAt: z.string().optional(),
})
export type Approval = z.infer<typeof Approval>

/** How the definition of a tool differed from the accepted one when the approval was requested. */
export const ApprovalDrift = z.object({
  kind: z.enum(['changed', 'new']).describe('new: nobody has accepted this tool yet'),
  difference: z
    .string()
    .describe(
      'Difference between the accepted definition and the definition that the approval is valid for, field by field, as plain text',
    ),
})
export type ApprovalDrift = z.infer<typeof ApprovalDrift>

/** The requests that are held open until the approval is answered. */
export const ApprovalWaiting = z.object({
  requests: z.int().describe('Number of requests that this instance holds open until the approval is answered'),
  complete: z.boolean().describe('False if other instances on the same database may hold further requests open'),
})
export type ApprovalWaiting = z.infer<typeof ApprovalWaiting>

/** An approval in full, as the page shows it. */
export const ApprovalDetail = Approval.extend({
  waiting: ApprovalWaiting.describe(
    'Whether a caller waits for the answer. If no caller waits, an approved call runs when the caller repeats it',
  ),
  drift: ApprovalDrift.optional().describe('Set if nobody has accepted the definition of the tool that would run'),
  earlier: z
    .object({ approved: z.int(), requested: z.int() })
    .describe('Earlier approvals of this agent for this tool'),
  recentCalls: z
    .array(Call.pick({ id: true, tool: true, state: true, startedAt: true }))
    .describe('The last calls of this agent before this one'),
  notAllowed: z.string().optional().describe('Why the user who reads this may not answer the approval'),
})
export type ApprovalDetail = z.infer<typeof ApprovalDetail>
