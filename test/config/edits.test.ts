import fc from 'fast-check'
import { stringify as toToml } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { stringify as toYaml } from 'yaml'
import { type ConfigEdit, formatProblem, parseConfig } from '../../src/config/config.ts'
import { editText } from '../../src/config/edit.ts'
import { GatewayError } from '../../src/contract/errors.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import { rounds } from '../support/rounds.ts'
import { by, configOf, createFolder, startStore } from './support.ts'

const yaml = `# Our gateway. Ask Kim before changing this.
listen: { host: 127.0.0.1, port: 4777 }

servers:
  # Documents of the team
  files:
    transport: stdio # local
    command: npx
    args: [-y, files]   # pinned
    env:
      # quiet
      LEVEL: "warn"
    enabled: true

  github:
    transport: http
    url: 'https://api.example/mcp'

# Rules follow.
rules:
  - { tools: "*", action: ask } # for now
`

const json = `{
    "listen": { "port": 4777 },
    "servers": {
        "files": {
            "transport": "stdio",
            "command": "npx"
        }
    },
    "rules": []
}
`

const toml = `# Our gateway
naming = "{server}_{tool}"

[servers.files] # local
transport = "stdio"
command = "npx"
# pinned
args = [
  "-y", # yes
  "files",
]

[servers.files.env]
LEVEL = "warn"

# The other one
[servers.github]
transport = "http"
url = "https://api.example/mcp"
timeout.call = 1000

[[rules]]
action = "ask" # for now
`

async function edited(name: string, text: string, ...edits: ConfigEdit[]): Promise<string> {
  await using folder = await createFolder()
  await using running = await startStore(await folder.write(name, text))
  for (const edit of edits) await running.store.change(edit, { by })
  const after = await folder.read(name)
  expect(configOf(after, name)).toEqual(running.store.current())
  return after
}

const notes = ServerDefinition.parse({ transport: 'stdio', command: 'uvx', args: ['notes'], env: { A: '1' } })

function fileServer(change: object): ServerDefinition {
  return ServerDefinition.parse({
    transport: 'stdio',
    command: 'npx',
    args: ['-y', 'files'],
    env: { LEVEL: 'warn' },
    ...change,
  })
}

describe('a changed YAML file', () => {
  it('keeps every comment, order and form of what stays when a server is added', async () => {
    const after = await edited('a.yaml', yaml, { kind: 'add-server', name: 'notes', definition: notes })
    const added = '  notes:\n    transport: stdio\n    command: uvx\n    args: [notes]\n    env:\n      A: "1"\n'
    expect(after).toBe(yaml.replace("mcp'\n", `mcp'\n${added}`))
  })

  it('changes only the fields that differ', async () => {
    const definition = fileServer({ env: { LEVEL: 'debug' }, timeout: { call: 5000 } })
    const after = await edited('a.yaml', yaml, { kind: 'set-server', name: 'files', definition })
    expect(after).toContain('      # quiet\n      LEVEL: "debug"\n    enabled: true\n    timeout:\n      call: 5000\n')
    expect(after).toContain('transport: stdio # local')
    expect(after).toContain('# Documents of the team')
  })

  it('leaves the file byte by byte alone when nothing differs', async () => {
    expect(await edited('a.yaml', yaml, { kind: 'set-server', name: 'files', definition: fileServer({}) })).toBe(yaml)
    expect(await edited('a.yaml', yaml, { kind: 'enable-server', name: 'github', enabled: true })).toBe(yaml)
  })

  it('takes fields away that the new definition no longer has', async () => {
    const definition = ServerDefinition.parse({ transport: 'sse', url: 'https://files.example' })
    const after = await edited('a.yaml', yaml, { kind: 'set-server', name: 'files', definition })
    expect(configOf(after).servers.files).toEqual(definition)
  })

  it('loses a removed server and its comment, and nothing else', async () => {
    const after = await edited('a.yaml', yaml, { kind: 'remove-server', name: 'github' })
    expect(after).not.toContain('github')
    expect(after).toContain('# Documents of the team')
    expect(after).toContain('# Rules follow.\nrules:')
  })

  it('switches a server off and on again', async () => {
    const off = await edited('a.yaml', yaml, { kind: 'enable-server', name: 'github', enabled: false })
    expect(off).toContain("mcp'\n    enabled: false\n")
    expect(await edited('a.yaml', off, { kind: 'enable-server', name: 'github', enabled: true })).toContain(
      'enabled: true\n\n# Rules',
    )
  })

  it('gets its first server on lines of its own', async () => {
    for (const text of ['servers: {}\n', '{}\n', 'listen: {}\n']) {
      const after = await edited('a.yaml', text, { kind: 'add-server', name: 'notes', definition: notes })
      expect(after).toContain('servers:\n  notes:\n    transport: stdio\n')
    }
  })

  it('keeps its indentation and its line ends', async () => {
    const wide = 'servers:\r\n    a:\r\n        transport: stdio\r\n        command: x\r\n'
    const after = await edited('a.yaml', wide, { kind: 'enable-server', name: 'a', enabled: false })
    expect(after).toBe(`${wide}        enabled: false\r\n`)
  })

  it('is refused, not damaged, where an alias would change two places at once', async () => {
    const text = 'servers:\n  a: &a { transport: stdio, command: x }\n  b: *a\n'
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('a.yaml', text))
    const change = running.store.change({ kind: 'enable-server', name: 'a', enabled: false }, { by })
    await expect(change).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('servers.a'),
    })
    expect(await folder.read('a.yaml')).toBe(text)
  })
})

describe('a changed JSON file', () => {
  it('keeps its indentation', async () => {
    const after = await edited('a.json', json, { kind: 'enable-server', name: 'files', enabled: false })
    expect(after).toBe(json.replace('"npx"\n', '"npx",\n            "enabled": false\n'))
  })

  it('gains and loses servers', async () => {
    const definition = notes
    const after = await edited('a.json', json, { kind: 'add-server', name: 'notes', definition })
    expect(JSON.parse(after).servers.notes).toEqual({
      transport: 'stdio',
      command: 'uvx',
      args: ['notes'],
      env: { A: '1' },
    })
    expect(await edited('a.json', after, { kind: 'remove-server', name: 'notes' })).toBe(json)
  })
})

describe('a changed TOML file', () => {
  it('keeps everything but the lines that change', async () => {
    const definition = fileServer({ env: { LEVEL: 'debug', MORE: 'x' }, cwd: '/srv' })
    const after = await edited('a.toml', toml, { kind: 'set-server', name: 'files', definition })
    expect(after).toBe(
      toml
        .replace('LEVEL = "warn"\n', 'LEVEL = "debug"\nMORE = "x"\n')
        .replace('  "files",\n]\n', '  "files",\n]\ncwd = "/srv"\n'),
    )
  })

  it('gains a table behind the others', async () => {
    const after = await edited('a.toml', toml, { kind: 'add-server', name: 'no.tes', definition: notes })
    const block = '\n[servers."no.tes"]\ntransport = "stdio"\ncommand = "uvx"\nargs = ["notes"]\nenv = { A = "1" }\n'
    expect(after).toBe(toml.replace('timeout.call = 1000\n', `timeout.call = 1000\n${block}`))
  })

  it('gains its first server at the end', async () => {
    const after = await edited('a.toml', 'naming = "{server}_{tool}"\n', {
      kind: 'add-server',
      name: 'notes',
      definition: notes,
    })
    expect(after).toMatch(/^naming = .*\n\n\[servers.notes\]\n/)
  })

  it('loses all tables of a removed server with the comment above', async () => {
    const less = await edited('a.toml', toml, { kind: 'remove-server', name: 'files' })
    expect(less).not.toMatch(/files|LEVEL|npx/)
    expect(less).toContain('# The other one\n[servers.github]')
    const none = await edited('a.toml', less, { kind: 'remove-server', name: 'github' })
    expect(none).toBe('# Our gateway\nnaming = "{server}_{tool}"\n\n[[rules]]\naction = "ask" # for now\n')
  })

  it('changes values in inline tables, dotted keys and lists over many lines', async () => {
    const text = '[servers]\na = { transport = "stdio", command = "x" }\nb.transport = "http"\nb.url = "https://b"\n'
    const off = await edited(
      'a.toml',
      text,
      { kind: 'enable-server', name: 'a', enabled: false },
      { kind: 'enable-server', name: 'b', enabled: false },
    )
    expect(off).toBe(
      '[servers]\na = { transport = "stdio", command = "x", enabled = false }\nb.transport = "http"\nb.url = "https://b"\nb.enabled = false\n',
    )
    const definition = fileServer({ args: ['other'] })
    expect(await edited('a.toml', toml, { kind: 'set-server', name: 'files', definition })).toContain(
      '# pinned\nargs = ["other"]\n\n[servers.files.env]',
    )
  })

  it('is refused with advice where all servers stand in one inline table', async () => {
    const text = 'servers = { a = { transport = "stdio", command = "x" } }\n'
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('a.toml', text))
    const change = running.store.change({ kind: 'add-server', name: 'notes', definition: notes }, { by })
    await expect(change).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('[servers.notes]'),
    })
    expect(await folder.read('a.toml')).toBe(text)
  })
})

describe('a change', () => {
  it.each([
    ['a.yaml', yaml],
    ['a.json', json],
    ['a.toml', toml],
  ])('of another scope stands in that scope, in %s', async (name, text) => {
    const scope = { kind: 'agent', name: 'reviewer' } as const
    const off = await edited(name, text, { kind: 'enable-server', name: 'files', enabled: false, scope })
    expect(configOf(off, name).agents.reviewer?.servers.files).toEqual({ enabled: false })
    const added = await edited(name, off, { kind: 'add-server', name: 'notes', definition: notes, scope })
    expect(configOf(added, name).agents.reviewer?.servers.notes).toEqual({
      transport: 'stdio',
      command: 'uvx',
      args: ['notes'],
      env: { A: '1' },
    })
    const gone = await edited(name, added, { kind: 'remove-server', name: 'files', scope })
    expect(configOf(gone, name).agents.reviewer?.servers.files).toBeUndefined()
  })

  it('writes out what overrides an earlier scope, also where it is the default', async () => {
    const definition = fileServer({ timeout: { call: 5000 } })
    const set = (scope?: { kind: 'agent'; name: string }, change = {}): ConfigEdit => ({
      kind: 'set-server',
      name: 'files',
      definition: { ...definition, ...change },
      scope,
    })
    const after = await edited(
      'a.yaml',
      yaml,
      set(),
      set({ kind: 'agent', name: 'r' }, { timeout: fileServer({}).timeout }),
    )
    expect(configOf(after).agents.r?.servers.files?.timeout?.call).toBe(30_000)
  })

  it('is refused when the name is taken, or not there', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('a.yaml', yaml))
    const { store } = running
    const scope = { kind: 'agent', name: 'reviewer' } as const
    await expect(store.change({ kind: 'add-server', name: 'files', definition: notes }, { by })).rejects.toMatchObject({
      code: 'server-exists',
    })
    const missing: ConfigEdit[] = [
      { kind: 'remove-server', name: 'constructor' },
      { kind: 'enable-server', name: 'nope', enabled: true },
      { kind: 'enable-server', name: 'nope', enabled: true, scope },
      { kind: 'remove-server', name: 'files', scope },
    ]
    for (const edit of missing)
      await expect(store.change(edit, { by })).rejects.toMatchObject({ code: 'server-not-found' })
    await expect(
      store.change(
        { kind: 'enable-server', name: 'files', enabled: false, scope: { kind: 'project', name: 'ghost' } },
        { by },
      ),
    ).rejects.toMatchObject({ code: 'request-invalid' })
    expect(await folder.read('a.yaml')).toBe(yaml)
    expect(running.heard).toEqual([])
  })

  it('that would make the whole invalid touches nothing', async () => {
    await using folder = await createFolder()
    const text = `${yaml}agents: { reviewer: { servers: { files: { enabled: false } } } }\n`
    await using running = await startStore(await folder.write('a.yaml', text))
    await expect(running.store.change({ kind: 'remove-server', name: 'files' }, { by })).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining(
        'agents.reviewer.servers.files: overrides a server that no earlier scope defines',
      ),
    })
    const bad: ConfigEdit[] = [
      { kind: 'add-server', name: 'bad name', definition: notes },
      { kind: 'add-server', name: '__proto__', definition: notes },
      { kind: 'add-server', name: 'open', definition: { ...notes, args: ['${'] } },
      { kind: 'add-server', name: 'half', definition: { env: { A: '1' } } },
    ]
    for (const edit of bad)
      await expect(running.store.change(edit, { by })).rejects.toMatchObject({ code: 'config-invalid' })
    expect(await folder.read('a.yaml')).toBe(text)
    expect(running.heard).toEqual([])
  })
})

const name = fc.constantFrom('a', 'b', 'c.d', 'constructor')
const text = fc.oneof(
  fc.constantFrom('plain', '', ' ', 'yes', '1', '# no', "it's", '"', 'a: b', '\\', '${X}', 'é☃', '\t', '\n'),
  fc.string().filter((drawn) => !drawn.includes('${')),
)
const fields = {
  args: fc.array(text, { maxLength: 3 }),
  env: fc.dictionary(fc.constantFrom('A', 'B', 'C D'), text, { maxKeys: 3 }),
  description: text,
  enabled: fc.boolean(),
  timeout: fc.record({ call: fc.integer({ min: 10, max: 99 }), start: fc.constant(120_000) }, { requiredKeys: [] }),
  tools: fc.record({ exclude: fc.array(text, { maxLength: 2 }) }, { requiredKeys: [] }),
}
const definition = fc
  .oneof(
    fc.record(
      { transport: fc.constant('stdio'), command: fc.constantFrom('x', 'y z'), ...fields },
      { requiredKeys: ['transport', 'command'] },
    ),
    fc.record(
      { transport: fc.constant('http'), url: fc.constantFrom('https://a', 'https://b'), enabled: fields.enabled },
      { requiredKeys: ['transport', 'url'] },
    ),
  )
  .map((stated) => ({ stated, whole: ServerDefinition.parse(stated) }))
const scope = fc.constantFrom(undefined, { kind: 'agent', name: 'r' } as const, { kind: 'project', name: 'p' } as const)
const edit: fc.Arbitrary<ConfigEdit> = fc.oneof(
  fc.record({
    kind: fc.constant('set-server' as const),
    name,
    definition: definition.map(({ whole }) => whole),
    scope,
  }),
  fc.record({ kind: fc.constant('remove-server' as const), name, scope }),
  fc.record({ kind: fc.constant('enable-server' as const), name, enabled: fc.boolean(), scope }),
)

describe('any series of changes', () => {
  const render: Record<string, (value: object) => string> = {
    'x.yaml': (value) => `# top\n${toYaml(value)}# end\n`,
    'x.json': (value) => JSON.stringify(value, null, 2),
    'x.toml': (value) => `# top\n${toToml(value)}# end\n`,
  }

  it('comes to the same in YAML, JSON and TOML, and keeps the comments', () => {
    const start = fc.dictionary(
      name,
      definition.map(({ stated }) => stated),
      { maxKeys: 3, noNullPrototype: true },
    )
    fc.assert(
      fc.property(start, fc.array(edit, { minLength: 1, maxLength: 4 }), (servers, edits) => {
        const value = {
          naming: '{server}_{tool}',
          servers,
          projects: { p: { owners: ['kim'] } },
          agents: { r: { project: 'p' } },
          rules: [{ action: 'ask' }],
        }
        const results = Object.entries(render).map(([file, write]) => applyAll(file, write(value), edits))
        const [first] = results
        for (const result of results) expect(result).toEqual(first)
      }),
      { numRuns: rounds(60, 300) },
    )
  })
})

/** Applies what can be applied; what is refused must be refused alike. */
function applyAll(file: string, start: string, edits: readonly ConfigEdit[]) {
  let content = start
  const outcomes: string[] = []
  for (const change of edits) {
    const before = parseConfig(file, content)
    if (!before.ok) throw new Error(before.problems.map(formatProblem).join('\n'))
    try {
      const after = editText({ file, text: content, config: before.config, value: before.value }, change)
      const valid = parseConfig(file, after).ok
      outcomes.push(valid ? 'done' : 'invalid')
      if (valid) content = after
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code === 'config-invalid') throw error
      outcomes.push(error.code)
    }
  }
  if (!file.endsWith('json')) expect(content.match(/^# (top|end)$/gm)).toHaveLength(2)
  return { outcomes, config: configOf(content, file) }
}
