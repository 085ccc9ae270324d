import { z } from 'zod'

export const AuditKind = z.enum([
  'question',
  'answer',
  'intent',
  'outcome',
  'late-outcome',
  'refusals',
  'change',
  'change-outcome',
  'anchor',
  'checkpoint',
])
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
  hash: z.string().describe('Keyed hash over this entry and the hash of the one before it'),
})
export type AuditEntry = z.infer<typeof AuditEntry>

/** An entry as an export holds it: with everything that proves it. `body` is the text that was hashed. */
export const ExportedEntry = z.strictObject({
  instance: z.string(),
  sequence: z.int(),
  at: z.int().describe('Milliseconds since 1970'),
  kind: AuditKind,
  call: z.string().nullable(),
  principal: z.string(),
  subject: z.string(),
  body: z.string().describe('JSON, byte for byte as it was recorded'),
  previous: z.string().nullable().describe('Hash of the entry before it; null where that is not known'),
  hash: z.string(),
})
export type ExportedEntry = z.infer<typeof ExportedEntry>

/** Where a chain stood: the sequence and the hash of its last entry. */
export const ChainMark = z.object({ sequence: z.int(), hash: z.string() })
export type ChainMark = z.infer<typeof ChainMark>

/** Body of an anchor: where the chains stood that have grown since the anchor before. */
export const AnchorBody = z.object({ heads: z.record(z.string(), ChainMark) })
export type AnchorBody = z.infer<typeof AnchorBody>

/** Body of a checkpoint: entries before a time go, up to these marks; `after` is where a chain that was cut before began. */
export const CheckpointBody = z.object({
  before: z.int(),
  removed: z.record(z.string(), ChainMark.extend({ after: ChainMark.optional() })),
  days: z.int().optional().describe('The retention that was set'),
  entries: z.int().optional().describe('How many entries were about to be removed'),
})
export type CheckpointBody = z.infer<typeof CheckpointBody>

export const findingKinds = [
  'altered',
  'missing',
  'order',
  'unchained',
  'anchor-differs',
  'anchor-forged',
  'cut',
  'chain-missing',
  'restored',
  'retention-clock',
  'wrong-key',
  'no-outcome',
  'no-intent',
  'late-outcome',
  'not-recorded',
  'unreadable',
] as const

export const AuditFinding = z.object({
  kind: z.enum(findingKinds),
  message: z.string().describe('What is wrong, for people'),
  instance: z.string().optional(),
  sequence: z.int().optional(),
  call: z.string().optional(),
})
export type AuditFinding = z.infer<typeof AuditFinding>

/** One removal of old entries, as its checkpoint in the record says. */
export const AuditRemoval = z.object({
  checkpoint: z.string().describe('The entry that says so, as instance:sequence'),
  at: z.string(),
  before: z.string().describe('Only entries before this time were removed'),
  entries: z.int().optional().describe('How many; older checkpoints do not say'),
  days: z.int().optional().describe('The retention that was set then'),
})
export type AuditRemoval = z.infer<typeof AuditRemoval>

/** What a look at the whole record found, and what it could not see. */
export const AuditReport = z.object({
  clean: z.boolean().describe('Nothing was found'),
  keyed: z.boolean().describe('The key was at hand: without it no content is proven'),
  entries: z.int(),
  chains: z.int(),
  anchors: z.object({
    inside: z.int().describe('Anchors in the record'),
    outside: z.int().describe('Anchors that were read from outside the database'),
    last: z.string().optional().describe('Time of the newest one outside'),
  }),
  findings: z.array(AuditFinding).describe('The first hundred'),
  found: z.int().describe('All findings, also those that are not listed'),
  removals: z.array(AuditRemoval).describe('What retention removed, newest first; at most the last hundred'),
  notices: z.array(z.string()).describe('What to know that is not wrong'),
  checked: z.array(z.string()),
  unseen: z.array(z.string()).describe('What this look cannot see'),
})
export type AuditReport = z.infer<typeof AuditReport>
