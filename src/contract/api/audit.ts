import { z } from 'zod'
import { onlookers, operators } from '../access.ts'
import { AuditEntry, AuditKind, AuditReport } from '../audit.ts'
import { Call, CallState } from '../call.ts'
import { Status } from '../status.ts'
import { byId, endpoint, page, paging } from './base.ts'

/** A time as people write it, in milliseconds. */
const time = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: 'must be a time such as 2026-11-16T08:00:00Z, or a date',
})

const filter = {
  principal: z.string().optional().describe('Only entries of this principal, such as agent:reviewer'),
  subject: z.string().optional().describe('Only entries about this tool or thing; * stands for any characters'),
  kind: AuditKind.optional().describe('Only entries of this kind'),
  call: z.string().optional().describe('Only entries of this call'),
  since: time.optional().describe('Only entries from this time on'),
  until: time.optional().describe('Only entries before this time'),
}

export const AuditExport = z.strictObject({
  format: z.enum(['jsonl', 'csv']).default('jsonl').describe('jsonl can be verified, csv is for people'),
  ...filter,
})
export type AuditExport = z.infer<typeof AuditExport>

export const audit = {
  list: endpoint(onlookers)
    .route({ method: 'GET', path: '/audit', tags: ['audit'], summary: 'Entries of the record, newest first' })
    .input(
      z.strictObject({
        ...paging,
        ...filter,
        owner: z.string().optional().describe('Only entries of calls on behalf of this user'),
        server: z.string().optional().describe('Only entries of calls to this server'),
        state: CallState.optional().describe('Only entries of calls that ended like this'),
      }),
    )
    .output(page(AuditEntry)),
  verify: endpoint(onlookers, false)
    .route({
      method: 'GET',
      path: '/audit/verify',
      tags: ['audit'],
      summary: 'Proves the whole record, and says what it cannot see',
    })
    .output(AuditReport),
  export: endpoint(onlookers)
    .route({
      method: 'GET',
      path: '/audit/export',
      tags: ['audit'],
      summary: 'The record as text, chain by chain: JSON Lines or CSV',
    })
    .input(AuditExport)
    .output(z.string()),
  confirmClock: endpoint(operators)
    .route({
      method: 'POST',
      path: '/audit/clock',
      tags: ['audit'],
      summary: 'States what time it is, so that retention believes the clock of the gateway',
    })
    .input(z.strictObject({ time: z.iso.datetime({ offset: true }).describe('The time now, within an hour') }))
    .output(z.object({ retention: Status.shape.retention })),
  get: endpoint(onlookers)
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
