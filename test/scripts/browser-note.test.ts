import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** What the last lines of `npm test` would be, by the script itself. */
async function noteFor(words: string[], chromium: string): Promise<string> {
  const program = `import('./scripts/browser.mjs').then(({ browserNote }) =>
    process.stdout.write(browserNote(${JSON.stringify(words)}, { SALLYPORT_CHROMIUM: ${JSON.stringify(chromium)} }) ?? ''))`
  return (await run(process.execPath, ['-e', program], { cwd: root })).stdout
}

it.each<[words: string[], said: boolean]>([
  [[], true],
  [['test/web'], true],
  [['-t', 'the page'], true],
  [['--config', 'test/slow/vitest.config.ts'], true],
  [['test/policy'], false],
  [['--config', 'test/agents/vitest.config.ts'], false],
])(
  'says after `npm test %j` on a machine without a browser that browser tests did not run: %j',
  async (words, said) => {
    const note = await noteFor(words, '/nowhere/chromium')
    expect(note).toMatch(
      said ? /^sallyport: THE BROWSER TESTS DID NOT RUN: \/nowhere\/chromium does not exist\./ : /^$/,
    )
  },
)

it('says nothing where there is a browser', async () => {
  expect(await noteFor([], process.execPath)).toBe('')
})

it('says it last, behind all that vitest has written', async () => {
  const env = { ...process.env, SALLYPORT_CHROMIUM: '/nowhere/chromium', SALLYPORT_TEST_BUILT: 'yes' }
  const words = ['scripts/test.mjs', 'test/web/nothing-of-this-name', '--passWithNoTests']
  const { stdout, stderr } = await run(process.execPath, words, { cwd: root, env })
  expect(stdout).toContain('No test files found')
  expect(stderr.trimEnd()).toMatch(/did not run[\s\S]*run the tests again\.$/i)
})
