import { z } from 'zod'
import { deciders, everyone } from '../access.ts'
import { Grant, NewGrant } from '../grant.ts'
import { byId, endpoint, page, paging } from './base.ts'

export const grants = {
  list: endpoint(everyone)
    .route({ method: 'GET', path: '/grants', tags: ['grants'], summary: 'List grants, newest first' })
    .input(z.strictObject({ ...paging, principal: z.string().optional().describe('Only grants for this principal') }))
    .output(page(Grant)),
  add: endpoint(deciders)
    .route({
      method: 'POST',
      path: '/grants',
      tags: ['grants'],
      summary: 'Give a grant; only for signed-in persons',
      successStatus: 201,
    })
    .input(NewGrant)
    .output(Grant),
  revoke: endpoint(deciders)
    .route({
      method: 'DELETE',
      path: '/grants/{id}',
      tags: ['grants'],
      summary: 'Revoke a grant; after the answer no call can use it',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(Grant),
}
