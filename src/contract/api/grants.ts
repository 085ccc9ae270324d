import { z } from 'zod'
import { deciders, everyone } from '../access.ts'
import { Grant, NewGrant } from '../grant.ts'
import { byId, endpoint, page, paging } from './base.ts'

export const grants = {
  list: endpoint(everyone)
    .route({ method: 'GET', path: '/grants', tags: ['grants'], summary: 'Grants with used of budget, newest first' })
    .input(z.strictObject({ ...paging, principal: z.string().optional().describe('Only grants for this principal') }))
    .output(page(Grant)),
  add: endpoint(deciders)
    .route({
      method: 'POST',
      path: '/grants',
      tags: ['grants'],
      summary: 'Give a grant; only a person who has signed in may',
      successStatus: 201,
    })
    .input(NewGrant)
    .output(Grant),
  revoke: endpoint(deciders)
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
