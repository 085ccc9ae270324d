import { it } from 'vitest'
import { followModel } from './model.ts'

it('runs what was permitted, as often as it was, whatever people, callers, time and restarts do', () => followModel(20))
