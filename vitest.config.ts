import { defineConfig } from 'vitest/config'
import { readyStorageThreads } from './test/support/programs.ts'

export default defineConfig({
  plugins: [readyStorageThreads],
  test: {
    include: ['test/**/*.test.ts', 'src/**/*.test.ts'],
    // Real agents, and what takes minutes, have commands of their own: npm run test:agents, npm run test:slow.
    exclude: ['test/agents/**', 'test/slow/**'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // The files that one worker runs share their modules: reading these anew for each took a third of the time.
    isolate: false,
    execArgv: ['--max-semi-space-size=64'], // less often collected: most objects of a test are short-lived
    // A test that fails once and then passes is reported as such (`retry x1`). In CI it does not stop everybody's work.
    retry: process.env.CI ? 1 : 0,
    maxWorkers: 3, // on two cores: a part of every test is waiting for processes, sockets and timers
  },
})
