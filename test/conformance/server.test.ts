import { describe, expect, it } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { startConformanceServer } from './fixture.ts'
import { startForwarder } from './forwarder.ts'
import { runSuite, type SuiteEnd } from './suite.ts'

type Cell = { readonly era: 'legacy' | 'modern'; readonly transport: 'stdio' | 'http'; readonly revision: string }

const [older, newer] = ['2025-11-25', '2026-07-28']
const own: Cell[] = [
  { era: 'legacy', transport: 'stdio', revision: older },
  { era: 'legacy', transport: 'http', revision: older },
  { era: 'modern', transport: 'stdio', revision: newer },
  { era: 'modern', transport: 'http', revision: newer },
]
const bridged: Cell[] = [
  { era: 'modern', transport: 'stdio', revision: older },
  { era: 'modern', transport: 'http', revision: older },
]

// Side by side, because the suite spends most of its time waiting: for streams to reopen, and for tasks to end.
describe('the official conformance suite', () => {
  it.concurrent.each([...own, ...bridged])(
    'finds no fault in $revision with a $era server over $transport behind the gateway',
    async (cell) => {
      const { code, output } = await runThrough(cell)
      expect(code, output).toBe(0)
      // Extensions such as tasks do not count for the code; here they do.
      expect(output).not.toMatch(/^\s*✗ /m)
    },
  )

  /** It wants to see the keys of its own fixture, and a server of the older era asks one question at a time, without any. */
  const keyed = ['input-required-result-basic-elicitation', 'input-required-result-multiple-input-requests']

  it.concurrent.each([
    { era: 'legacy', transport: 'stdio', revision: newer },
    { era: 'legacy', transport: 'http', revision: newer },
  ] as const)(
    'finds no fault in $revision with a $era server over $transport behind the gateway, but for the keys of questions',
    async (cell) => {
      const end = await runThrough(cell)
      expect(failedOf(end), end.output).toEqual(keyed)
    },
  )
})

async function runThrough({ era, transport, revision }: Cell): Promise<SuiteEnd> {
  await using server = await startConformanceServer(era, transport)
  await using test = await startTestGateway({ servers: { fixture: server.definition }, rules: [{ action: 'allow' }] })
  await test.reach('fixture', 'connected')
  await using forwarder = await startForwarder(new URL('/mcp/s/fixture', test.url), await test.token('suite'))
  return await runSuite(['server', '--url', forwarder.url, '--requirements', revision])
}

/** Those that count: the suite names the others, such as extensions, in a list of their own. */
function failedOf({ output }: SuiteEnd): string[] {
  const names = (pattern: RegExp) => [...output.matchAll(pattern)].map(([, name]) => name ?? '')
  const uncounted = new Set(names(/^ {2}✗ (\S+) \(/gm))
  return names(/^✗ (\S+): /gm).filter((name) => !uncounted.has(name))
}
