import { expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { namesOf, recordingServer, toolsOf } from './support.ts'

const fits = /^[A-Za-z0-9_-]{1,64}$/
const ugly = stdioFixture('hostile', ['ugly-names'])

/** Which public name leads to which tool of which server. */
function ownersOf(gateway: TestGateway): Map<string, string> {
  return new Map(toolsOf(gateway).map(({ name, server, original }) => [`${server}/${original}`, name]))
}

it('keeps every name across a restart, another order of servers, and servers that come and go', async () => {
  const { server } = recordingServer()
  const servers = { files: server, my_files: server, 'my.files': server, ugly }
  await using first = await startTestGateway({ servers })
  const before = ownersOf(first)
  await first.close()
  await using second = await startTestGateway({
    servers: { ugly, 'my.files': server, a: server, files: server, my_files_read: server },
  })
  const after = ownersOf(second)
  const staying = [...before.keys()].filter((tool) => !tool.startsWith('my_files/'))
  expect(staying.length).toBeGreaterThan(30)
  expect(staying.map((tool) => after.get(tool))).toEqual(staying.map((tool) => before.get(tool)))
  for (const names of [[...before.values()], [...after.values()]]) {
    expect(new Set(names).size).toBe(names.length)
    expect(names.filter((name) => !fits.test(name))).toEqual([])
  }
  expect(before.get('files/read_thing')).toBe('files_read_thing')
})

it('keeps tools apart whose servers were named so that they would be taken for each other', async () => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({ servers: { read: server, read_read: server, 'read.read': server } })
  const tools = ownersOf(gateway)
  expect(new Set(tools.values()).size).toBe(3 * namesOf(gateway, 'tester', { kind: 'server', name: 'read' }).length)
})

it.each([
  ['mcp_{server}_{tool}', 'mcp_files_read_thing'],
  ['{tool}__{server}', 'read_thing__files'],
])('names tools by the pattern %s', async (naming, expected) => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: server, ugly }, naming })
  expect(namesOf(gateway)).toContain(expected)
  expect(namesOf(gateway).filter((name) => !fits.test(name))).toEqual([])
})

it('offers one server under the names that it gives itself', async () => {
  await using gateway = await startTestGateway({ servers: { ugly } })
  expect(namesOf(gateway, 'tester', { kind: 'server', name: 'ugly' })).toEqual([
    'ok',
    'with spaces',
    'path/../name',
    'dotted.name.',
  ])
})
