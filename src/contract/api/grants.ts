import { z } from 'zod'
import { Grant, NewGrant } from '../grant.ts'
import { base, byId, page, paging } from './base.ts'

export const grants = {
  list: base
    .route({ method: 'GET', path: '/grants', tags: ['grants'], summary: 'Grants with used of budget, newest first' })
    .input(z.strictObject({ ...paging, principal: z.string().optional().describe('Only grants for this principal') }))
    .output(page(Grant)),
  add: base
    .route({
      method: 'POST',
      path: '/grants',
      tags: ['grants'],
      summary: 'Give a grant; only a person who has signed in may',
      successStatus: 201,
    })
    .input(NewGrant)
    .output(Grant),
  revoke: base
    .route({
      method: 'DELETE',
      path: '/grants/{id}',
      tags: ['grants'],
      summary: 'Take a grant back; once answered, no call uses it any more',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(Grant),
}
