import { expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { acceptTools, poll, startTestGateway } from '../../support/gateway.ts'
import { ownTools } from '../mcp/raw.ts'
import { call, namesOf, recordingServer, textOf, toolsOf } from './support.ts'

it('offers and runs only what is included and not excluded', async () => {
  const { server, received } = recordingServer()
  const files = { ...server, tools: { include: ['*_thing', 'echo'], exclude: ['destroy_*', 'both_thing'] } }
  await using gateway = await startTestGateway({ servers: { files }, rules: [{ action: 'allow' }] })
  expect(namesOf(gateway)).toEqual([
    'files_read_thing',
    'files_write_thing',
    'files_plain_thing',
    'files_idempotent_thing',
    'files_echo',
  ])
  const refused = ['files_destroy_thing', 'files_both_thing', 'files_fail', 'destroy_thing'].map((name) =>
    call(gateway, name),
  )
  for (const outcome of await Promise.all(refused)) {
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'tool-not-found' }, call: { state: 'denied' } })
  }
  expect(await call(gateway, 'destroy_thing', { selector: { kind: 'server', name: 'files' } })).toMatchObject({
    kind: 'refused',
    error: { code: 'tool-not-found' },
  })
  expect(await received()).toEqual([])
})

it('offers a tool under the name, the description and the risk that the operator gives it', async () => {
  const { server, received } = recordingServer()
  const override = {
    destroy_thing: { name: 'tidy', description: 'Tidies up', risk: 'read' as const },
    read_thing: { risk: 'danger' as const },
  }
  await using gateway = await startTestGateway({
    servers: { files: { ...server, tools: { include: ['destroy_thing', 'read_thing'], override } } },
    describe: '[{server}/{tool}] {description}',
  })
  expect(toolsOf(gateway)).toMatchObject([
    {
      name: 'files_read_thing',
      risk: 'danger',
      riskFrom: 'override',
      description: '[files/read_thing] The tool read_thing of a fixture',
    },
    {
      name: 'files_tidy',
      risk: 'read',
      riskFrom: 'override',
      original: 'destroy_thing',
      description: '[files/destroy_thing] Tidies up',
    },
  ])
  expect(await call(gateway, 'files_tidy')).toMatchObject({
    kind: 'answered',
    call: { tool: 'files_tidy', risk: 'read' },
  })
  expect(await call(gateway, 'files_destroy_thing')).toMatchObject({ error: { code: 'tool-not-found' } })
  expect(await call(gateway, 'files_read_thing')).toMatchObject({ kind: 'waiting' })
  expect(await received()).toEqual(['destroy_thing'])
})

it.each([
  [
    'a trusted server',
    {},
    { read_thing: 'read', delete_everything: 'write', plain_thing: 'write', both_thing: 'danger' },
  ],
  [
    'a server that may lower nothing',
    { trust: 'none' as const },
    { read_thing: 'write', delete_everything: 'write', plain_thing: 'write', both_thing: 'danger' },
  ],
  [
    'a server whose tools are dangerous by default',
    { defaultRisk: 'danger' as const },
    { read_thing: 'read', delete_everything: 'danger', plain_thing: 'danger', both_thing: 'danger' },
  ],
])('judges the risk of the tools of %s', async (_, more, expected) => {
  const { server } = recordingServer()
  const files = { ...server, ...more, tools: { include: Object.keys(expected) } }
  await using gateway = await startTestGateway({ servers: { files } })
  expect(Object.fromEntries(toolsOf(gateway).map(({ original, risk }) => [original, risk]))).toEqual(expected)
})

it('offers a toolset as a choice of servers and tools, and nothing else runs at its address', async () => {
  const one = recordingServer()
  const two = recordingServer()
  await using gateway = await startTestGateway({
    servers: { one: one.server, two: two.server },
    toolsets: { reading: { servers: ['o*'], tools: ['*_read_*', 'two_echo', 'one_echo'] } },
  })
  const selector = { kind: 'toolset' as const, name: 'reading' }
  expect(namesOf(gateway, 'tester', selector)).toEqual(['one_read_thing', 'one_echo'])
  expect(textOf(await call(gateway, 'one_echo', { selector, given: { text: 'hello' } }))).toBe('hello')
  expect(await call(gateway, 'two_echo', { selector })).toMatchObject({ error: { code: 'tool-not-found' } })
  expect(await call(gateway, 'one_fail', { selector })).toMatchObject({ error: { code: 'tool-not-found' } })
  expect(await two.received()).toEqual([])
  const client = await gateway.connectV2('tester', { path: '/mcp/t/reading' })
  const listed = (await client.listTools()).tools.map(({ name }) => name)
  expect(listed).toEqual(['one_read_thing', 'one_echo', ...ownTools])
})

it.each(['nothing', 'constructor', '__proto__'])('knows no toolset %s', async (name) => {
  await using gateway = await startTestGateway({ toolsets: { reading: {} } })
  expect(() => namesOf(gateway, 'tester', { kind: 'toolset', name })).toThrow(`No toolset is named ${name}`)
})

it('lists what bad servers offer so that clients of both generations take it', async () => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({
    servers: {
      files: server,
      schemas: stdioFixture('hostile', ['bad-schemas']),
      names: stdioFixture('hostile', ['ugly-names']),
    },
  })
  const expected = [...namesOf(gateway), ...ownTools]
  const older = await gateway.connectV1('tester')
  expect((await older.listTools()).tools.map(({ name }) => name)).toEqual(expected)
  for (const mode of ['auto', 'legacy'] as const) {
    const client = await gateway.connectV2('tester', { mode })
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(expected)
  }
  expect(gateway.gateway.servers.get(undefined, 'schemas').setAside.map(({ name }) => name)).toEqual([
    'deep_schema',
    'huge_schema',
    'remote_ref',
    'cyclic_ref',
    '(none)',
  ])
  expect(gateway.gateway.servers.get(undefined, 'names').setAside).toContainEqual({
    name: 'ok',
    reason: 'the server lists this name twice',
  })
  expect(expected.filter((name) => name.startsWith('names_')).length).toBe(4)
})

it('takes up and drops tools as soon as a server says that its list changed', async () => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: { ...server, tools: { exclude: ['secret_*'] } } } })
  const before = namesOf(gateway)
  const change = (given: { name: string; remove?: boolean }) => call(gateway, 'files_change_list', { given })
  await change({ name: 'secret_tool' })
  await change({ name: 'new_tool' })
  await poll(() => namesOf(gateway).includes('files_new_tool') || undefined)
  expect(namesOf(gateway)).toEqual([...before, 'files_new_tool'])
  await acceptTools(gateway, 'files')
  expect(textOf(await call(gateway, 'files_new_tool', { given: { a: 1 } }))).toBe('{"a":1}')
  await change({ name: 'new_tool', remove: true })
  await poll(() => !namesOf(gateway).includes('files_new_tool') || undefined)
  expect(namesOf(gateway)).toEqual(before)
  expect(await call(gateway, 'files_new_tool')).toMatchObject({ error: { code: 'tool-not-found' } })
})
