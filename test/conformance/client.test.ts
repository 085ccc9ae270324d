import { expect, it } from 'vitest'
import { programPath } from '../support/programs.ts'
import { startClientUnderTest } from './client.ts'
import { runSuite } from './suite.ts'

const command = `${process.execPath} ${programPath('test/conformance/hand-over')}`
const [older, newer] = ['2025-11-25', '2026-07-28']

/** Those about what a client says to a server; the others are about signing in, and about skills that an agent reads. */
const scenarios = [
  ['initialize', older],
  ['tools_call', older],
  ['tools_call', newer],
  ['elicitation-sep1034-client-defaults', older],
  ['sse-retry', older],
  ['request-metadata', newer],
  ['sep-2322-client-request-state', newer],
  ['http-standard-headers', newer],
  ['http-custom-headers', newer],
  ['http-invalid-tool-headers', newer],
  ['json-schema-ref-no-deref', newer],
  ['json-schema-2020-12-preservation', older],
  ['json-schema-2020-12-preservation', newer],
] as const

it.each(scenarios)('the suite finds no fault with the gateway as a client: %s in %s', async (scenario, revision) => {
  await using client = await startClientUnderTest()
  const { code, output } = await runSuite(
    ['client', '--command', command, '--scenario', scenario, '--spec-version', revision, '--verbose'],
    { SALLYPORT_TEST_CLIENT: client.url },
  )
  expect(code, output).toBe(0)
})
