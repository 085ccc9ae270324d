import { stringify as toToml } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { stringify as toYaml } from 'yaml'
import { type ConfigEdit, formatProblem, parseConfig } from '../../src/config/config.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import { by, configOf, createFolder, problemsOf, startStore } from './support.ts'

const url = 'https://mcp.example/mcp'

/** What other programs write, what it means, and the keys that are named. */
const accepted: [why: string, entry: object, meant: object, keys: string[]][] = [
  ['type stdio', { type: 'stdio', command: 'npx' }, { transport: 'stdio', command: 'npx' }, ['type']],
  ['type local', { type: 'local', command: 'npx' }, { transport: 'stdio', command: 'npx' }, ['type']],
  ['type http', { type: 'http', url }, { transport: 'http', url }, ['type']],
  ['type sse', { type: 'sse', url }, { transport: 'sse', url }, ['type']],
  ['type remote', { type: 'remote', url }, { transport: 'http', url }, ['type']],
  ...['streamable-http', 'streamableHttp', 'streamable_http', 'http-stream'].flatMap(
    (name): [string, object, object, string[]][] => [
      [`type ${name}`, { type: name, url }, { transport: 'http', url }, ['type']],
      [`transport ${name}`, { transport: name, url }, { transport: 'http', url }, ['transport']],
    ],
  ),
  ['transport local', { transport: 'local', command: 'a' }, { transport: 'stdio', command: 'a' }, ['transport']],
  ['both and the same', { type: 'streamable-http', transport: 'http', url }, { transport: 'http', url }, ['type']],
  ['a command alone', { command: 'npx' }, { transport: 'stdio', command: 'npx' }, ['command']],
  ['an address alone', { url }, { transport: 'http', url }, ['url']],
  ['serverUrl', { serverUrl: url }, { transport: 'http', url }, ['serverUrl', 'url']],
  ['httpUrl', { httpUrl: url, transport: 'http' }, { transport: 'http', url }, ['httpUrl']],
  ['the address twice', { transport: 'http', url, httpUrl: url }, { transport: 'http', url }, ['httpUrl']],
  [
    'a list as command',
    { type: 'local', command: ['npx', '-y', 'a@1.0.0'] },
    { transport: 'stdio', command: 'npx', args: ['-y', 'a@1.0.0'] },
    ['type', 'command'],
  ],
  [
    'environment',
    { transport: 'stdio', command: 'a', environment: { A: '1' } },
    { transport: 'stdio', command: 'a', env: { A: '1' } },
    ['environment'],
  ],
  [
    'disabled: true',
    { transport: 'http', url, disabled: true },
    { transport: 'http', url, enabled: false },
    ['disabled'],
  ],
  ['disabled: false', { transport: 'http', url, disabled: false }, { transport: 'http', url }, ['disabled']],
]

/** Spellings with more than one possible meaning. */
const refused: [why: string, entry: object, problem: RegExp][] = [
  ['two transports', { type: 'sse', transport: 'http', url }, /^x.yaml:3: servers.a.type: .*keep only `transport`$/],
  ['command and address', { command: 'npx', url }, /^x.yaml:4: servers.a.url: and `command` are both present/],
  ['two addresses', { url, serverUrl: 'https://b.example' }, /^x.yaml:4: servers.a.serverUrl: .*keep only `url`$/],
  ['httpUrl with sse', { httpUrl: url, transport: 'sse' }, /^x.yaml:3: servers.a.httpUrl: .*write `url` for sse$/],
  ['two lists', { type: 'stdio', command: ['a', 'b'], args: ['c'] }, /^x.yaml:4: servers.a.command: .*`args`/],
  ['two switches', { transport: 'http', url, enabled: true, disabled: true }, /servers.a.disabled: .*`enabled`$/],
  ['two environments', { command: 'a', env: { A: '1' }, environment: { A: '2' } }, /servers.a.environment: .*`env`$/],
  [
    'a transport nobody knows',
    { type: 'websocket', url },
    /^x.yaml:3: servers.a.type: is not a known transport; write `transport: /,
  ],
  [
    'remote without an address',
    { transport: 'remote', command: 'a' },
    /servers.a.transport: must be stdio, http or sse/,
  ],
]

function read(value: object, name = 'x.yaml') {
  const reading = parseConfig(name, name.endsWith('toml') ? toToml(value) : toYaml(value))
  if (!reading.ok) throw new Error(reading.problems.map(formatProblem).join('\n'))
  return reading
}

describe('a spelling of another program', () => {
  it.each(accepted)('is accepted where its meaning is certain: %s', (_, entry, meant, keys) => {
    for (const name of ['x.yaml', 'x.json', 'x.toml']) {
      const value = { servers: { a: entry } }
      const reading = name === 'x.json' ? parseConfig(name, JSON.stringify(value)) : read(value, name)
      if (!reading.ok) throw new Error(reading.problems.map(formatProblem).join('\n'))
      expect(reading.config.servers.a).toEqual(ServerDefinition.parse(meant))
      expect(reading.spellings.map(({ key }) => key)).toEqual(keys.map((key) => `servers.a.${key}`))
    }
  })

  it.each(refused)('is refused with its line where its meaning is not certain: %s', (_, entry, problem) => {
    const lines = problemsOf('x.yaml', toYaml({ servers: { a: entry } })).map(formatProblem)
    expect(lines).toContainEqual(expect.stringMatching(problem))
  })

  it('is named with file, line, key and the form to write', () => {
    const text = 'mcpServers:\n  a:\n    type: streamable-http\n    serverUrl: https://a.example\n'
    const reading = parseConfig('x.yaml', text)
    expect(reading.ok && reading.notices(0).map(formatProblem)).toEqual([
      'x.yaml:1: mcpServers: is accepted as a spelling of another program; write `servers`',
      'x.yaml:4: mcpServers.a.serverUrl: is accepted as a spelling of another program; write `url`',
      'x.yaml:3: mcpServers.a.type: is accepted as a spelling of another program; write `transport: http`',
    ])
  })

  it('never puts a value of the entry into a message', () => {
    const entry = { command: ['npx', 'hidden-value'], environment: { A: 'hidden-value' }, disabled: true }
    const shown = read({ mcpServers: { a: entry } })
      .spellings.map(formatProblem)
      .join('\n')
    expect(shown).not.toContain('hidden-value')
    const wrong = { command: ['hidden-value'], args: ['hidden-value'], url: 'hidden-value', serverUrl: 'b' }
    expect(
      problemsOf('x.yaml', toYaml({ servers: { a: wrong } }))
        .map(formatProblem)
        .join(),
    ).not.toContain('hidden')
  })

  it('is accepted in every scope', () => {
    const { config, spellings } = read({
      projects: { shop: { mcpServers: { a: { type: 'http', url } } } },
      agents: { bot: { servers: { b: { command: ['npx'] } } } },
      users: { ada: { mcpServers: { c: { disabled: true, url } } } },
    })
    expect(config.projects.shop?.servers.a).toEqual({ transport: 'http', url })
    expect(config.agents.bot?.servers.b).toEqual({ transport: 'stdio', command: 'npx' })
    expect(config.users.ada?.servers.c).toEqual({ transport: 'http', url, enabled: false })
    expect(spellings.map(({ key }) => key)).toContain('users.ada.mcpServers')
  })

  it('chooses no transport for an entry that refines a server of the same name', () => {
    const { config } = read({
      servers: { a: { transport: 'sse', url } },
      agents: { bot: { servers: { a: { url, description: 'mine' } } } },
    })
    expect(config.agents.bot?.servers.a).toEqual({ url, description: 'mine' })
  })

  it('reports other problems where the text has them', () => {
    const text = 'mcpServers:\n  a:\n    type: local\n    command:\n      - npx\n      - "${BAD-}"\n    serverUrl: 3\n'
    expect(problemsOf('x.yaml', text)).toMatchObject([{ line: 7, key: 'mcpServers.a.serverUrl' }])
    const args = 'mcpServers:\n  a:\n    type: local\n    command:\n      - npx\n      - "${BAD-}"\n'
    expect(problemsOf('x.yaml', args)).toMatchObject([{ line: 6, key: 'mcpServers.a.command.1' }])
  })

  it('does not merge `servers` and `mcpServers`', () => {
    expect(problemsOf('x.yaml', 'servers: {}\nmcpServers: {}\n')).toMatchObject([{ line: 2, key: 'mcpServers' }])
  })
})

const yaml = `# Pasted from another program
mcpServers: # all of them
  # Documents
  files:
    type: stdio # local
    command: [npx, -y, files@1.0.0]
    environment:
      # quiet
      LEVEL: warn
    disabled: false
  other:
    type: streamable-http
    serverUrl: https://other.example
rules: []
`
const json = `{
  "mcpServers": {
    "files": {
      "type": "stdio", "command": ["npx", "-y", "files@1.0.0"],
      "environment": { "LEVEL": "warn" }, "disabled": false
    },
    "other": { "type": "streamable-http", "serverUrl": "https://other.example" }
  }
}
`
const toml = `# Pasted
[mcpServers.files] # documents
type = "stdio" # local
command = ["npx", "-y", "files@1.0.0"]
disabled = false

[mcpServers.files.environment]
LEVEL = "warn" # quiet

[mcpServers.other]
type = "streamable-http"
serverUrl = "https://other.example"
`
const inline = `[mcpServers]
files = { type = "stdio", command = ["npx", "-y", "files@1.0.0"], environment = { LEVEL = "warn" }, disabled = false }
other = { type = "streamable-http", serverUrl = "https://other.example" }
`

const files = { transport: 'stdio', command: 'npx', args: ['-y', 'files@1.0.0'], env: { LEVEL: 'warn' } }
const notes = ServerDefinition.parse({ transport: 'stdio', command: 'uvx', args: ['notes@1'] })

describe.each([
  ['a.yaml', yaml],
  ['a.json', json],
  ['a.toml', toml],
  ['inline.toml', inline],
])('an edit of %s', (name, text) => {
  async function edited(...edits: ConfigEdit[]) {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write(name, text))
    const before = running.store.current()
    for (const edit of edits) await running.store.change(edit, { by })
    const after = await folder.read(name)
    expect(configOf(after, name)).toEqual(running.store.current())
    return { before, after, config: running.store.current(), changed: running.heard.map(({ event }) => event) }
  }

  it('writes our spelling for the entry and leaves no other one behind', async () => {
    const { before, after, config, changed } = await edited({ kind: 'enable-server', name: 'files', enabled: false })
    expect(config.servers).toEqual({ ...before.servers, files: ServerDefinition.parse({ ...files, enabled: false }) })
    expect(after).not.toMatch(/mcpServers|disabled|environment|"?type"?\W+stdio/)
    expect(after).toMatch(/serverUrl/) // the other entry is not touched
    expect(changed).toEqual([expect.objectContaining({ changed: ['servers.files'] })])
  })

  it('keeps the comments', async () => {
    const { after } = await edited({ kind: 'enable-server', name: 'files', enabled: false })
    for (const comment of text.match(/# .*/g) ?? []) expect(after).toContain(comment)
  })

  it('sets risks, replaces, adds and removes', async () => {
    const { config, after } = await edited(
      { kind: 'set-risks', name: 'other', risks: { get: 'read' } },
      { kind: 'add-server', name: 'notes', definition: notes },
      { kind: 'set-server', name: 'files', definition: ServerDefinition.parse({ ...files, description: 'mine' }) },
    )
    expect(config.servers.other).toMatchObject({ url: 'https://other.example', transport: 'http' })
    expect(config.servers.files).toEqual(ServerDefinition.parse({ ...files, description: 'mine' }))
    expect(config.servers.notes).toEqual(notes)
    expect(after).not.toMatch(/mcpServers|serverUrl|streamable/)
    const removed = await edited({ kind: 'remove-server', name: 'files' })
    expect(Object.keys(removed.config.servers)).toEqual(['other'])
  })

  it('of nothing leaves the text alone', async () => {
    expect((await edited({ kind: 'enable-server', name: 'files', enabled: true })).after).toBe(text)
  })
})

describe('our spelling written by hand', () => {
  it('is no change of the configuration', async () => {
    await using folder = await createFolder()
    const file = await folder.write('a.yaml', yaml)
    await using running = await startStore(file)
    const canonical = yaml.replace('mcpServers', 'servers').replace('type: stdio', 'transport: stdio')
    await folder.write('a.yaml', canonical)
    await running.store.reload()
    expect(running.record.changes).toEqual([])
    expect(running.store.rejected()).toEqual([])
  })

  it('is not recorded as a change while the gateway was stopped', async () => {
    await using folder = await createFolder()
    const first = await startStore(await folder.write('a.yaml', yaml))
    const { record } = first
    await first[Symbol.asyncDispose]()
    await using again = await startStore(
      await folder.write('a.yaml', yaml.replace('mcpServers', 'servers')),
      {},
      undefined,
      record,
    )
    expect(again.record.changes).toEqual([])
  })
})
