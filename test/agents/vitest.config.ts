import { defineConfig } from 'vitest/config'
import { readyStorageThreads } from '../support/programs.ts'

/** Real agents take seconds for what a test takes milliseconds for, and minutes to install the first time. */
export default defineConfig({
  plugins: [readyStorageThreads],
  test: {
    include: ['test/agents/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 240_000,
    hookTimeout: 330_000,
    pool: 'forks',
  },
})
