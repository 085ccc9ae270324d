import { z } from 'zod'

export const AuditKind = z.enum(['intent', 'outcome', 'change'])
export type AuditKind = z.infer<typeof AuditKind>

/** One line of the append-only record. */
export const AuditEntry = z.object({
  instance: z.string(),
  sequence: z.int(),
  at: z.string(),
  kind: AuditKind,
  call: z.string().optional(),
  principal: z.string(),
  subject: z.string().describe('The tool that was called, or the thing that was changed'),
  body: z.record(z.string(), z.unknown()),
})
export type AuditEntry = z.infer<typeof AuditEntry>
