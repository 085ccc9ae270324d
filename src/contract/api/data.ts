import { operators } from '../access.ts'
import { Compaction } from '../compaction.ts'
import { endpoint } from './base.ts'

export const data = {
  compact: endpoint(operators)
    .route({
      method: 'POST',
      path: '/data/compact',
      tags: ['data'],
      summary: 'Give unused room in the database file back to the disk; says what to do on PostgreSQL',
    })
    .output(Compaction),
}
