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
      summary: 'Questions that waited or wait for a person, newest first',
    })
    .input(z.strictObject({ ...paging, state: ApprovalState.optional().describe('Only questions in this state') }))
    .output(page(Approval)),
  get: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/approvals/{id}',
      tags: ['approvals'],
      summary: 'One question with what happened before and around it',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(ApprovalDetail),
  answer: endpoint(deciders)
    .route({
      method: 'POST',
      path: '/approvals/{id}/answer',
      tags: ['approvals'],
      summary: 'Approve or deny; only a person who has signed in may',
      description: 'The first answer counts. Approving runs nothing by itself: the call that waits does, once.',
      inputStructure: 'detailed',
    })
    .input(
      byId.extend({
        body: z.strictObject({
          verdict: Verdict,
          reason: z.string().max(2000).optional().describe('Given to the model when the answer is no'),
          grant: GrantWish.optional().describe('Allow more calls like this one'),
          hash: z.string().optional().describe('The `hash` of what was looked at; another one is refused'),
        }),
      }),
    )
    .output(Approval),
}
