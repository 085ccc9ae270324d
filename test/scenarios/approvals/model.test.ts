import { it } from 'vitest'
import { followModel } from './model.ts'

// 300 runs are in test/slow.
it('runs what was permitted, as often as it was, whatever people, callers, time and restarts do, in 8 runs', () =>
  followModel(8))
