import { it } from 'vitest'
import { expectIntentFirst } from '../calls/intent.ts'

it('sends nothing of 10,000 writing calls before their intent entries are on disk, although the store fails at random', () =>
  expectIntentFirst(10_000))
