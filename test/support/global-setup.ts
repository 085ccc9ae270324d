import { readdir, readFile } from 'node:fs/promises'

const marker = 'SALLYPORT_TEST_RUN'

/** Every process that a test starts inherits the marker; none may be alive when all tests are done. */
export default function setup(): () => Promise<void> {
  const run = `${process.pid}-${Date.now()}`
  process.env[marker] = run
  return async () => {
    const left = await waitForNone(run)
    if (left.length > 0) throw new Error(`Processes of this test run are still alive:\n${left.join('\n')}`)
  }
}

async function waitForNone(run: string): Promise<string[]> {
  let left: string[] = []
  for (let attempt = 0; attempt < 50; attempt++) {
    left = await fixturesAlive(run)
    if (left.length === 0) return []
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return left
}

/** Children of the gateway have a minimal environment of their own: they are found by their fixture's path instead. */
async function fixturesAlive(run: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue
    const [command, environment, status] = await Promise.all(
      ['cmdline', 'environ', 'stat'].map((file) => readFile(`/proc/${entry}/${file}`, 'utf8').catch(() => '')),
    )
    if (!command || status?.includes(') Z ')) continue
    const isFixture = command.includes('test/fixtures/') || command.includes('examples/demo-server')
    const isOurs = environment?.includes(`${marker}=${run}`) || environment?.includes('SALLYPORT_INSTANCE=')
    if (isFixture && isOurs) found.push(`${entry} ${command.replaceAll('\0', ' ')}`)
  }
  return found
}
