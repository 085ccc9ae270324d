import { operators } from '../access.ts'
import { Compaction } from '../compaction.ts'
import { endpoint } from './base.ts'

export const data = {
  compact: endpoint(operators)
    .route({
      method: 'POST',
      path: '/data/compact',
      tags: ['data'],
      summary: 'Compact the SQLite database file; for PostgreSQL the answer contains advice instead',
    })
    .output(Compaction),
}
