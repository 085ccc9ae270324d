import { defineConfig } from 'vitest/config'
import { readyStorageThreads } from '../support/programs.ts'
import { filesWithRounds } from '../support/rounds.ts'

/** What takes minutes: every crash point, and orders that only show in large numbers. */
export default defineConfig({
  plugins: [readyStorageThreads],
  test: {
    include: ['test/slow/**/*.test.ts', ...filesWithRounds],
    env: { SALLYPORT_LONG_TESTS: '1' },
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 900_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 1,
  },
})
