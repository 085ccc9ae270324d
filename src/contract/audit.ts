import { z } from 'zod'

/** Earlier versions wrote `question` for `approval`. Such entries stay as they are: the hash of an entry covers its kind. */
export const AuditKind = z.enum([
  'approval',
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

/** One entry of the append-only audit record. */
export const AuditEntry = z.object({
  instance: z.string(),
  sequence: z.int(),
  at: z.string(),
  kind: AuditKind,
  call: z.string().optional(),
  principal: z.string(),
  subject: z.string().describe('The tool that was called, or the thing that was changed'),
  body: z.record(z.string(), z.unknown()),
  hash: z.string().describe('Keyed hash over this entry and the hash of the previous entry'),
})
export type AuditEntry = z.infer<typeof AuditEntry>

/** An entry in an export, with all fields that verification needs. `body` is the text that was hashed. */
export const ExportedEntry = z.strictObject({
  instance: z.string(),
  sequence: z.int(),
  at: z.int().describe('Milliseconds since 1970'),
  kind: AuditKind,
  call: z.string().nullable(),
  principal: z.string(),
  subject: z.string(),
  body: z.string().describe('JSON, byte for byte as it was recorded'),
  previous: z.string().nullable().describe('Hash of the previous entry; null if it is not known'),
  hash: z.string(),
})
export type ExportedEntry = z.infer<typeof ExportedEntry>

/** The last entry of a chain at some time: its sequence and its hash. */
export const ChainMark = z.object({ sequence: z.int(), hash: z.string() })
export type ChainMark = z.infer<typeof ChainMark>

/** Body of an anchor: the last entry of each chain that has new entries since the previous anchor. */
export const AnchorBody = z.object({ heads: z.record(z.string(), ChainMark) })
export type AnchorBody = z.infer<typeof AnchorBody>

/**
 * Body of a checkpoint: retention removes the entries before a time, in each chain up to the given mark. `after` is the last
 * entry that an earlier checkpoint removed from the chain.
 */
export const CheckpointBody = z.object({
  before: z.int(),
  removed: z.record(z.string(), ChainMark.extend({ after: ChainMark.optional() })),
  days: z.int().optional().describe('The configured retention, in days'),
  entries: z.int().optional().describe('Number of entries to remove'),
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
  message: z.string().describe('What is wrong'),
  instance: z.string().optional(),
  sequence: z.int().optional(),
  call: z.string().optional(),
})
export type AuditFinding = z.infer<typeof AuditFinding>

/** One removal of old entries, from its checkpoint in the audit record. */
export const AuditRemoval = z.object({
  checkpoint: z.string().describe('The checkpoint entry, as instance:sequence'),
  at: z.string(),
  before: z.string().describe('Only entries before this time were removed'),
  entries: z.int().optional().describe('Number of removed entries. Checkpoints of older versions do not contain it'),
  days: z.int().optional().describe('The retention that was configured at that time, in days'),
})
export type AuditRemoval = z.infer<typeof AuditRemoval>

/** The result of verifying the whole audit record, and what the verification could not check. */
export const AuditReport = z.object({
  clean: z.boolean().describe('True if there are no findings'),
  keyed: z
    .boolean()
    .describe('True if the key was available. Without the key the content of entries cannot be verified'),
  entries: z.int(),
  chains: z.int(),
  anchors: z.object({
    inside: z.int().describe('Number of anchors in the audit record'),
    outside: z.int().describe('Number of anchors that were read from outside the database'),
    last: z.string().optional().describe('Time of the newest anchor outside the database'),
  }),
  findings: z.array(AuditFinding).describe('The first 100 findings'),
  found: z.int().describe('Number of all findings, including those that are not listed'),
  removals: z.array(AuditRemoval).describe('Removals of old entries by retention, newest first, at most 100'),
  notices: z.array(z.string()).describe('Remarks that are not findings'),
  checked: z.array(z.string()),
  unseen: z.array(z.string()).describe('What this verification cannot check'),
})
export type AuditReport = z.infer<typeof AuditReport>
