import { z } from 'zod'

/** The result of compacting the database. */
export const Compaction = z.object({
  database: z.enum(['sqlite', 'postgresql']),
  before: z.int().optional().describe('Bytes on disk before compacting; missing if the gateway did not compact'),
  after: z.int().optional().describe('Bytes on disk after compacting'),
  advice: z.string().optional().describe('What to do if the gateway does not compact this kind of database'),
})
export type Compaction = z.infer<typeof Compaction>
