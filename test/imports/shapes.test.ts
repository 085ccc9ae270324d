import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HttpFixture, startHttpFixture } from '../fixtures/fixtures.ts'
import { administrator, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { importText, outcomes, readShape, writeProgram } from './stage.ts'

let gate: TestGateway
let http: HttpFixture
let sse: HttpFixture
let program: string
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-import-'))
  program = await writeProgram(folder)
  http = await startHttpFixture('sdk-servers/v2', ['http'])
  sse = await startHttpFixture('sdk-servers/v1', ['sse'])
})
afterAll(async () => {
  await http?.stop()
  await sse?.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Only program and address are replaced. */
function replaced(file: string): string {
  return readShape(file)
    .replaceAll('/opt/tools/notes-server', program)
    .replaceAll(/https:\/\/mcp\.example\.com\/(?:mcp|other)/g, http.url)
    .replaceAll('https://mcp.example.com/sse', sse.url)
}

const secrets = ['NOTES_TOKEN', 'SEARCH_TOKEN', 'POSTHOG_API_KEY', 'CONTEXT7_KEY', 'PLAIN_KEY']

it.each([
  ['mcp-servers.json', ['files connected', 'Team-Search connected', 'archive disabled']],
  ['enabled-tools.json', ['notes connected', 'events disabled']],
  ['mcp-servers-alone.yaml', ['notes connected', 'search connected']],
  ['connectors.json', ['posthog connected', 'context7 disabled']],
  ['connectors.yaml', ['posthog connected', 'plain connected', 'open connected']],
  ['manifest.yaml', ['notes connected', 'events disabled', 'search connected']],
  [
    'agents.toml',
    [
      'notes connected',
      'search connected',
      'agent:Release-Agent/search connected',
      'agent:Release-Agent/builds connected',
      'agent:reviewer/notes disabled',
    ],
  ],
])('servers of %s are connected after the import', async (file, expected) => {
  gate = await startTestGateway({})
  try {
    for (const name of secrets)
      await gate.gateway.secrets.set(administrator, { scope: 'global', name, value: `value-of-${name}` })
    const { servers } = await importText(gate.gateway, replaced(file))
    const states = servers.map(({ name, scope, state, error }) => {
      return `${scope === 'global' ? '' : `${scope}/`}${name} ${state}${error ? ` ${error}` : ''}`
    })
    expect(states).toEqual(expected)
    const again = gate.gateway.imports.preview(administrator, { text: replaced(file) })
    expect(new Set(again.servers.map(({ outcome }) => outcome))).toEqual(new Set(['same']))
  } finally {
    await gate.close()
  }
})

it('saves the unreplaced shapes as the preview shows them', async () => {
  await using alone = await startTestGateway({})
  const text = readShape('mcp-servers.json').replaceAll(
    '"transport": "stdio"',
    '"disabled": true, "transport": "stdio"',
  )
  const preview = alone.gateway.imports.preview(administrator, { text })
  expect(outcomes(preview)).toEqual(['files new', 'Team-Search new', 'archive new'])
  expect(preview.servers[1]).toMatchObject({
    name: 'Team-Search',
    title: 'Team Search',
    definition: { title: 'Team Search', transport: 'http', headers: { Authorization: 'Bearer ${SEARCH_TOKEN}' } },
  })
  expect(preview.variables).toEqual([
    { name: 'NOTES_TOKEN', servers: ['files'], listed: false, fallback: false },
    { name: 'SEARCH_TOKEN', servers: ['Team-Search'], listed: false, fallback: false },
  ])
  await importText(alone.gateway, text)
  const { servers, rules, environment } = alone.gateway.config.current()
  const saved = Object.entries(servers).map(([name, definition]) => ({ name, definition }))
  expect(saved).toMatchObject(preview.servers.map(({ name, definition }) => ({ name, definition })))
  expect({ rules, environment }).toEqual({ rules: [], environment: [] })
})
