import { z } from 'zod'
import { deciders, everyone } from '../access.ts'
import { Approval, ApprovalDetail, ApprovalState, Verdict } from '../approval.ts'
import { GrantWish } from '../grant.ts'
import { byId, endpoint, page, paging } from './base.ts'

export const approvals = {
  list: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/approvals',
      tags: ['approvals'],
      summary: 'List approvals, newest first',
    })
    .input(z.strictObject({ ...paging, state: ApprovalState.optional().describe('Only approvals in this state') }))
    .output(page(Approval)),
  get: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/approvals/{id}',
      tags: ['approvals'],
      summary: 'Get one approval, with earlier approvals and recent calls of the agent',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(ApprovalDetail),
  answer: endpoint(deciders)
    .route({
      method: 'POST',
      path: '/approvals/{id}/answer',
      tags: ['approvals'],
      summary: 'Approve or deny a call; only for signed-in persons',
      description:
        'If several people answer, only the first answer is used. A rule can require two approvals. The answer does not run the call: an approved call runs once, when its waiting request continues or the caller repeats it.',
      inputStructure: 'detailed',
    })
    .input(
      byId.extend({
        body: z.strictObject({
          verdict: Verdict,
          reason: z.string().max(2000).optional().describe('Why the call is denied. The model gets this text'),
          grant: GrantWish.optional().describe('Grant to give with the approval, for further calls without approval'),
          hash: z
            .string()
            .optional()
            .describe('`hash` of the approval that the person saw. The answer is refused if the hash differs'),
        }),
      }),
    )
    .output(Approval),
}
