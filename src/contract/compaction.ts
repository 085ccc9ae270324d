import { z } from 'zod'

/** What compacting the database has done. */
export const Compaction = z.object({
  database: z.enum(['sqlite', 'postgresql']),
  before: z.int().optional().describe('Bytes on disk before; missing where no database was asked'),
  after: z.int().optional().describe('Bytes on disk afterwards'),
  advice: z.string().optional().describe('What to do where the gateway does not compact the database itself'),
})
export type Compaction = z.infer<typeof Compaction>
