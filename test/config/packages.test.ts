import { expect, it } from 'vitest'
import { formatProblem, parseConfig } from '../../src/config/config.ts'

/** The packages that are reported because their version is not fixed. */
function noticesOf(...commands: string[]): string[] {
  const servers = Object.fromEntries(
    commands.map((line, index) => {
      const [command, ...args] = line.split(' ')
      return [`s${index}`, { transport: 'stdio', command, args }]
    }),
  )
  const reading = parseConfig('sallyport.json', JSON.stringify({ servers }))
  if (!reading.ok) throw new Error(reading.problems.map(formatProblem).join('\n'))
  return reading.notices(0).map(({ message }) => /version of (.*): write/.exec(message)?.[1] ?? message)
}

it.each([
  ['npx -y some-server', 'some-server'],
  ['npx some-server@latest /srv', 'some-server@latest'],
  ['npx -y @scope/server', '@scope/server'],
  ['npx --yes @scope/server@^1.2.0', '@scope/server@^1.2.0'],
  ['npx -p some-server serve', 'some-server'],
  ['npx --package=some-server@next serve', 'some-server@next'],
  ['/usr/local/bin/npx some-server', 'some-server'],
  ['npx.cmd some-server', 'some-server'],
  ['bunx some-server', 'some-server'],
  ['uvx some-server', 'some-server'],
  ['uvx --python 3.12 some-server', 'some-server'],
  ['uvx --from some-server>=1 serve', 'some-server>=1'],
])('%s runs the latest published version of %s', (line, found) => {
  expect(noticesOf(line)).toEqual([found])
})

it.each([
  'npx -y some-server@1.2.3',
  'npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /srv/docs',
  'npx --package=some-server@1.2.3 serve',
  'uvx some-server@1.2.3',
  'uvx some-server==1.2',
  'uvx --from some-server==1.2.3 serve',
  'npx ./server',
  'npx https://example.com/server.tgz',
  'npx -y ${PACKAGE}',
  'npx',
  'node server.js',
])('%s is as it should be', (line) => {
  expect(noticesOf(line)).toEqual([])
})
