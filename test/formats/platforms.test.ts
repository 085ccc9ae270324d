import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findFormat, parseText } from '../../src/documents/parse.ts'
import { readShapes } from '../../src/formats/formats.ts'

function read(file: string) {
  const text = readFileSync(join(import.meta.dirname, '../imports/shapes', file), 'utf8')
  return readText(text, findFormat(file))
}

function readText(text: string, format = findFormat('a.yaml')) {
  const parsing = parseText(format ?? 'yaml', text)
  if (!parsing.ok) throw new Error(JSON.stringify(parsing.faults))
  const { from, servers, reported } = readShapes(parsing.parsed.value)
  const definitions = servers.map(({ key, agent, definition }) => [agent ? `${agent}/${key}` : key, definition])
  const notes = servers.flatMap(({ key, notes: own }) => own.map(({ field, message }) => `${key} ${field}: ${message}`))
  return {
    from,
    servers: Object.fromEntries(definitions),
    notes,
    needs: servers.flatMap(({ needs }) => needs.map(({ name }) => name)),
    reported: reported.map(({ key, message }) => `${key} ${message}`),
  }
}

const allowNote = 'chooses the tools that are offered. It allows no call: Sallyport has its own rules'

it('reads mcp-servers.json with transport, and takes no approval from it', () => {
  expect(read('mcp-servers.json')).toEqual({
    from: ['mcp-servers.json'],
    servers: {
      files: {
        transport: 'stdio',
        command: '/opt/tools/notes-server',
        args: ['--folder', '/srv/docs'],
        env: { LOG_LEVEL: 'warn', NOTES_TOKEN: '${NOTES_TOKEN}' },
      },
      'Team Search': {
        transport: 'http',
        url: 'https://mcp.example.com/mcp',
        headers: { Authorization: 'Bearer ${SEARCH_TOKEN}' },
      },
      archive: { transport: 'http', url: 'https://mcp.example.com/mcp', enabled: false },
    },
    notes: [
      'Team Search autoApprove: allowed calls without asking in that program. This is not taken over: Sallyport has its own rules',
    ],
    needs: [],
    reported: [],
  })
})

it('reads enabledTools.mcp_servers, and reports each other tool with its replacement', () => {
  const { servers, notes, reported } = read('enabled-tools.json')
  expect(servers).toEqual({
    notes: {
      transport: 'stdio',
      command: '/opt/tools/notes-server',
      args: ['--folder', '/srv/docs'],
      env: { LOG_LEVEL: 'warn' },
      enabled: true,
      tools: { include: ['record', 'list_*'] },
      description: 'Notes of the team',
    },
    events: { transport: 'sse', url: 'https://mcp.example.com/sse', enabled: false },
  })
  expect(notes).toEqual([
    'notes allowedTools: * and ? match other characters here',
    `notes allowedTools: ${allowNote}`,
    'events allowedTools: * and ? match other characters here',
  ])
  expect(reported.map((line) => line.slice(0, 72))).toEqual([
    'enabledTools.slack_notify is replaced by a server for Slack (messages th',
    'enabledTools.email_user is replaced by a server that sends mail (message',
    'enabledTools.create_linear_issue is replaced by the server of Linear: sa',
    'enabledTools.create_session is replaced by a session of the gateway: sal',
    'enabledTools.open_door is a tool of that platform: add a server that off',
  ])
})

it('reads mcp_servers alone; an empty allow list offers no tool', () => {
  const { from, servers, notes } = read('mcp-servers-alone.yaml')
  expect(from).toEqual(['enabledTools'])
  expect(servers).toEqual({
    notes: {
      transport: 'stdio',
      command: '/opt/tools/notes-server',
      env: { PORT: '3000' },
      enabled: true,
      description: 'Notes of the team',
    },
    search: { transport: 'http', url: 'https://mcp.example.com/mcp', tools: { include: [] } },
  })
  expect(notes).toEqual(['search type: was understood as http', 'search allowedTools: is empty, so no tool is offered'])
})

it('reads mcp_connectors with bearer and custom headers, and names the secrets that they need', () => {
  const { servers, needs, reported } = read('connectors.json')
  expect(servers).toEqual({
    posthog: {
      transport: 'http',
      url: 'https://mcp.example.com/mcp',
      headers: { Authorization: 'Bearer ${POSTHOG_API_KEY}' },
      defaultRisk: 'write',
      enabled: true,
    },
    context7: {
      transport: 'http',
      url: 'https://mcp.example.com/mcp',
      headers: { 'X-Context7-Key': '${CONTEXT7_KEY}' },
      defaultRisk: 'read',
      enabled: false,
    },
  })
  expect(needs).toEqual(['POSTHOG_API_KEY', 'CONTEXT7_KEY'])
  expect(reported).toEqual([])
})

it('reads other spellings of connectors and says what was understood', () => {
  const { servers, notes, reported } = read('connectors.yaml')
  expect(servers).toMatchObject({
    posthog: { headers: { Authorization: 'Bearer ${POSTHOG_API_KEY}' }, defaultRisk: 'danger' },
    plain: { headers: { 'X-Api-Key': '${PLAIN_KEY}' } },
    open: { transport: 'http', url: 'https://mcp.example.com/mcp' },
  })
  expect(notes).toContain('posthog endpoint: was read as url')
  expect(notes).toContain('plain secret: was read as the name of a secret: ${PLAIN_KEY}')
  expect(reported).toEqual(['broken auth.header is missing: the name of the header'])
})

it('keeps the value of a secret that a connector contains, for the one who saves it to move away', () => {
  const { servers, notes, needs } = readText(
    'mcp_connectors: [{ name: a, kind: remote_http, url: "https://a.example", auth: { type: bearer, secret: phx_4f7Ab2 } }]',
  )
  expect(servers).toMatchObject({ a: { headers: { Authorization: 'Bearer phx_4f7Ab2' } } })
  expect(notes).toEqual(['a auth.secret: was read as the value of the secret, not as its name'])
  expect(needs).toEqual([])
})

it('reads a manifest with config.servers, and reports every other key', () => {
  const { servers, notes, reported } = read('manifest.yaml')
  expect(servers).toEqual({
    notes: {
      transport: 'stdio',
      command: '/opt/tools/notes-server',
      args: ['--folder', '/srv/docs'],
      env: { LOG_LEVEL: 'warn' },
      tools: { include: ['record', 'list', 'search'] },
    },
    events: {
      transport: 'sse',
      url: 'https://mcp.example.com/sse',
      enabled: false,
      tools: { include: ['search'] },
    },
    search: {
      transport: 'http',
      url: 'https://mcp.example.com/mcp',
      headers: { 'X-Team': 'support' },
      tools: { include: ['search'] },
    },
  })
  expect(notes).toContain('events enabled: is not listed in enabled_servers, so the server is saved disabled')
  expect(reported).toEqual([
    'enabled_servers.gone names no server of this manifest',
    'name describes the file and is not needed',
    'version describes the file and is not needed',
    'description describes the file and is not needed',
    'model belongs to the agent: keep it in the configuration of the agent',
    'triggers has no equivalent here and is not taken over',
    'config.temperature belongs to the agent: keep it in the configuration of the agent',
  ])
})

it('reads defaults and agents of TOML: agents add servers and override them by name', () => {
  const { servers, notes, reported } = read('agents.toml')
  expect(servers).toEqual({
    notes: { transport: 'stdio', command: '/opt/tools/notes-server', args: ['--folder', '/srv/docs'] },
    search: { transport: 'http', url: 'https://mcp.example.com/mcp' },
    'Release Agent/search': { transport: 'http', url: 'https://mcp.example.com/other' },
    'Release Agent/builds': { transport: 'stdio', command: '/opt/tools/notes-server' },
    'reviewer/notes': {
      transport: 'stdio',
      command: '/opt/tools/notes-server',
      args: ['--folder', '/srv/docs'],
      enabled: false,
    },
  })
  expect(notes).toEqual(['notes name: has no command and no address: the other fields come from defaults.mcp'])
  expect(reported).toEqual([
    'defaults.model belongs to the agent: keep it in the configuration of the agent',
    'agents.Release Agent.instructions belongs to the agent: keep it in the configuration of the agent',
  ])
})

it('reads all shapes of one document, each key once', () => {
  const { from, servers } = readText(
    JSON.stringify({
      mcpServers: { a: { transport: 'http', url: 'https://a.example' }, b: { command: 'b' } },
      mcp_servers: { c: { type: 'local', command: ['c'] } },
      mcp_connectors: [{ name: 'd', kind: 'remote_http', url: 'https://d.example' }],
    }),
  )
  expect(from).toEqual(['mcp-servers.json', 'enabledTools', 'mcp_connectors'])
  expect(Object.keys(servers)).toEqual(['a', 'b', 'c', 'd'])
})

it.each([
  [
    'tools',
    '{ servers: { a: { transport: http, url: "https://a.example", tools: { override: { x: { risk: read } } } } } }',
  ],
  ['trust', '{ servers: { a: { transport: http, url: "https://a.example", trust: annotations } } }'],
  ['defaultRisk', '{ servers: { a: { transport: http, url: "https://a.example", defaultRisk: read } } }'],
  ['alwaysAllow', '{ mcpServers: { a: { transport: http, url: "https://a.example", alwaysAllow: ["*"] } } }'],
])('takes no %s that would loosen what is asked', (_, text) => {
  const { servers, notes } = readText(text)
  expect(servers).toEqual({ a: { transport: 'http', url: 'https://a.example' } })
  expect(notes).toHaveLength(1)
})

it.each(['a: 1', '[]', '{ servers: 3 }', '{ config: { servers: {} } }', '{ agents: [{ name: x }] }'])(
  'recognises nothing in %s',
  (text) => {
    expect(readText(text).from).toEqual([])
  },
)
