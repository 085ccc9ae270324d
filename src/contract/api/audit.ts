import { z } from 'zod'
import { operators, readers } from '../access.ts'
import { AuditEntry, AuditKind, AuditReport } from '../audit.ts'
import { Call, CallState } from '../call.ts'
import { Status } from '../status.ts'
import { byId, endpoint, page, paging } from './base.ts'

/** A time or a date in ISO 8601. */
const time = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: 'must be a time such as 2026-11-16T08:00:00Z, or a date',
})

const filter = {
  principal: z.string().optional().describe('Only entries of this principal, such as agent:reviewer'),
  subject: z.string().optional().describe('Only entries about this tool or other subject; * matches any characters'),
  kind: AuditKind.optional().describe('Only entries of this kind'),
  call: z.string().optional().describe('Only entries of this call'),
  since: time.optional().describe('Only entries from this time on'),
  until: time.optional().describe('Only entries before this time'),
}

export const AuditExport = z.strictObject({
  format: z.enum(['jsonl', 'csv']).default('jsonl').describe('jsonl can be verified; csv is for spreadsheets'),
  ...filter,
})
export type AuditExport = z.infer<typeof AuditExport>

export const audit = {
  list: endpoint(readers)
    .route({
      method: 'GET',
      path: '/audit',
      tags: ['audit'],
      summary: 'List entries of the audit record, newest first',
    })
    .input(
      z.strictObject({
        ...paging,
        ...filter,
        owner: z.string().optional().describe('Only entries of calls by agents and sessions that this user owns'),
        server: z.string().optional().describe('Only entries of calls to this server'),
        state: CallState.optional().describe('Only entries of calls in this state'),
      }),
    )
    .output(page(AuditEntry)),
  verify: endpoint(readers, false)
    .route({
      method: 'GET',
      path: '/audit/verify',
      tags: ['audit'],
      summary: 'Verify the whole audit record',
    })
    .output(AuditReport),
  export: endpoint(readers)
    .route({
      method: 'GET',
      path: '/audit/export',
      tags: ['audit'],
      summary: 'Export the audit record as JSON Lines or CSV, chain by chain',
    })
    .input(AuditExport)
    .output(z.string()),
  confirmClock: endpoint(operators)
    .route({
      method: 'POST',
      path: '/audit/clock',
      tags: ['audit'],
      summary: 'Confirm the current time, so that retention continues after it was paused because of a wrong clock',
    })
    .input(
      z.strictObject({
        time: z.iso
          .datetime({ offset: true })
          .describe('The current time. It may differ from the clock of the gateway by at most an hour'),
      }),
    )
    .output(z.object({ retention: Status.shape.retention })),
  get: endpoint(readers)
    .route({
      method: 'GET',
      path: '/audit/{id}',
      tags: ['audit'],
      summary: 'Get one entry by `instance:sequence`, or all entries of a call by the id of the call',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(z.object({ entries: z.array(AuditEntry), call: Call.optional() })),
}
