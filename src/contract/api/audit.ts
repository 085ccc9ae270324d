import { z } from 'zod'
import { AuditEntry, AuditKind } from '../audit.ts'
import { Call } from '../call.ts'
import { base, byId, page, paging } from './base.ts'

export const audit = {
  list: base
    .route({ method: 'GET', path: '/audit', tags: ['audit'], summary: 'Entries of the record, newest first' })
    .input(
      z.strictObject({
        ...paging,
        principal: z.string().optional().describe('Only entries of this principal, such as agent:reviewer'),
        subject: z.string().optional().describe('Only entries about this tool or thing'),
        kind: AuditKind.optional().describe('Only entries of this kind'),
        call: z.string().optional().describe('Only entries of this call'),
      }),
    )
    .output(page(AuditEntry)),
  get: base
    .route({
      method: 'GET',
      path: '/audit/{id}',
      tags: ['audit'],
      summary: 'One entry by `instance:sequence`, or all entries of one call by its id',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(z.object({ entries: z.array(AuditEntry), call: Call.optional() })),
}
