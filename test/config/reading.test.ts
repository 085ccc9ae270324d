import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  findConfigFile,
  formatProblem,
  parseConfig,
  readConfig,
  starterConfig,
  toConfigError,
} from '../../src/config/config.ts'
import { configOf, createFolder, problemsOf } from './support.ts'

/** The example of the design: names that people and outside tests rely on. */
const example = `
listen: { host: 127.0.0.1, port: 4777, publicUrl: "https://gate.example.com", allowedHosts: [], trustedProxies: [], tls: { cert: "", key: "" } }
naming: "{server}_{tool}"
describe: "{description}"
environment: [GITHUB_TOKEN, LOG_LEVEL]  # variables that \${NAME} may read
egress: { allow: ["10.0.0.0/8", "localhost"] }
servers:
  github:
    transport: http                     # stdio | http | sse
    url: https://api.githubcopilot.com/mcp/
    headers: { Authorization: "Bearer \${GITHUB_TOKEN}" }
    description: Issues, pull requests, repositories
    tools:
      include: ["*"]                    # globs on the server's own names
      exclude: ["delete_*"]
      override: { merge_pull_request: { risk: danger, name: merge, description: Merge a pull request } }
  files:
    transport: stdio
    command: npx
    args: ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/srv/docs"]
    env: { LOG_LEVEL: "\${LOG_LEVEL:-warn}" }
    cwd: /srv
    enabled: true
    defaultRisk: write
    trust: annotations
    secretsInArguments: false
    timeout: { start: 120000, connect: 15000, call: 30000 }
rules:
  - { tools: "github_*", risk: write, action: ask, approvers: any }
  - { tools: "*_delete_*", action: deny }
toolsets:
  support: { servers: [github], tools: ["github_search_*"] }
projects: { shop: { owners: [], servers: {}, rules: [] } }
agents: { reviewer: { servers: { files: { enabled: false } }, rules: [] } }
limits: { result: 262144, pending: 10, approvalExpiry: 600000, callsPerMinute: 600, concurrent: 64 }
`

const server = 'servers: { files: { transport: stdio, command: npx } }\n'

function linesOf(file: string, text: string): string[] {
  return problemsOf(file, text).map(formatProblem)
}

describe('reading', () => {
  it('takes the example of the design as it stands', () => {
    const config = configOf(example)
    expect(config.servers.github).toMatchObject({ transport: 'http', timeout: { maximum: 600_000 } })
    expect(config.agents.reviewer?.servers.files).toEqual({ enabled: false })
  })

  it('takes two empty names for no TLS at all', () => {
    expect(configOf(example).listen.tls).toBeUndefined()
  })

  it('reads the same from YAML, JSON and TOML', () => {
    const json =
      '{ "servers": { "files": { "transport": "stdio", "command": "npx", "env": { "A": "1" } } }, "rules": [{ "action": "ask" }] }'
    const toml =
      '[servers.files]\ntransport = "stdio"\ncommand = "npx"\n[servers.files.env]\nA = "1"\n[[rules]]\naction = "ask"\n'
    const yaml = 'servers:\n  files: { transport: stdio, command: npx, env: { A: "1" } }\nrules:\n  - action: ask\n'
    expect(configOf(json, 'x.json')).toEqual(configOf(yaml))
    expect(configOf(toml, 'x.toml')).toEqual(configOf(yaml))
  })

  it('gives every field that is left out its default', () => {
    expect(configOf('{}')).toMatchObject({
      listen: { host: '127.0.0.1', port: 4777 },
      naming: '{server}_{tool}',
      servers: {},
    })
  })

  it.each([
    ['x.yaml', 'listen:\n  host: 127.0.0.1\n  prt: 1\n'],
    ['x.json', '{\n  "listen": {\n    "prt": 1 } }'],
    ['x.toml', '[listen]\nhost = "127.0.0.1"\nprt = 1\n'],
  ])('names file, line, key and the nearest key in %s', (file, text) => {
    expect(problemsOf(file, text)).toMatchObject([{ file, line: 3, key: 'listen.prt', suggestion: 'port' }])
  })

  it.each([
    ['x.yaml', 'servers:\n  a:\n    transport: stdio\n    command: x\n    timeout:\n      call: soon\n', 6],
    [
      'x.json',
      '{ "servers": { "a": {\n"transport": "stdio",\n"command": "x",\n"timeout": {\n"call": "soon" } } } }',
      5,
    ],
    ['x.toml', '[servers.a]\ntransport = "stdio"\ncommand = "x"\n\n[servers.a.timeout]\ncall = "soon"\n', 6],
    ['x.toml', 'servers.a.transport = "stdio"\nservers.a.command = "x"\nservers.a.timeout.call = "soon"\n', 3],
    ['x.toml', '# a\n[servers]\na = { transport = "stdio", command = "x", timeout = { call = "soon" } }\n', 3],
  ])('finds the line of a wrong value in %s (%#)', (file, text, line) => {
    const problem = { line, key: 'servers.a.timeout.call', message: 'must be a whole number, not text' }
    expect(problemsOf(file, text)).toMatchObject([problem])
  })

  it('counts the tables of a TOML list', () => {
    const text = '[[rules]]\naction = "ask"\n\n[[rules]]\naction = "asc"\n'
    expect(problemsOf('x.toml', text)).toMatchObject([{ line: 5, key: 'rules.1.action', suggestion: 'ask' }])
  })

  it('finds keys behind TOML strings and lists that go over many lines', () => {
    const text =
      '[servers.a]\ntransport = "stdio"\ncommand = """\n[listen]\n"x" ""\\"\n"""\nargs = [ # ]\n  "]",\n]\ncmd = 1\n'
    expect(problemsOf('x.toml', text)).toMatchObject([{ line: 10, key: 'servers.a.cmd', suggestion: 'command' }])
  })

  it('tells the transport that was probably meant', () => {
    expect(linesOf('x.yaml', 'servers:\n  a: { args: [x] }\n  c: {}\n')).toEqual([
      'x.yaml:2: servers.a.transport: is missing; it must be stdio, http or sse',
      'x.yaml:3: servers.c.transport: is missing; it must be stdio, http or sse',
    ])
    expect(problemsOf('x.yaml', 'servers: { a: { transport: htp, url: https://a.example } }')).toMatchObject([
      { suggestion: 'http' },
    ])
  })

  it('says that a field belongs to the other transport', () => {
    const text =
      'servers:\n  a: { transport: stdio, command: x, url: y }\n  b: { transport: sse, url: "https://b.example", env: {} }\n'
    expect(linesOf('x.yaml', text)).toEqual([
      'x.yaml:2: servers.a.url: is only allowed for http and sse, not for stdio',
      'x.yaml:3: servers.b.env: is only allowed for stdio, not for sse',
    ])
  })

  it('understands how other programs call the same thing', () => {
    expect(problemsOf('x.yaml', 'servers: { a: { transport: http, uri: "https://a.example" } }')).toContainEqual(
      expect.objectContaining({ key: 'servers.a.uri', suggestion: 'url' }),
    )
  })

  it.each([
    [
      'a key that comes twice in YAML',
      'x.yaml',
      'listen: {}\nservers:\n  a: { transport: stdio, command: x }\n  a: {}\n',
      4,
      'servers.a',
    ],
    ['a key that comes twice in JSON', 'x.json', '{ "listen": {},\n"listen": {} }', 2, 'listen'],
    ['a key that comes twice in TOML', 'x.toml', 'naming = "a"\nnaming = "b"\n', 2, ''],
    ['a tab', 'x.yaml', 'servers:\n\ta: 1\n', 2, ''],
    ['__proto__ in YAML', 'x.yaml', 'servers:\n  a:\n    __proto__: { enabled: false }\n', 3, 'servers.a.__proto__'],
    ['__proto__ in JSON', 'x.json', '{ "servers": {\n"__proto__": {} } }', 2, 'servers.__proto__'],
    ['__proto__ in TOML', 'x.toml', '[servers]\n[servers.__proto__]\nx = 1\n', 2, 'servers.__proto__'],
    ['a second document', 'x.yaml', 'listen: {}\n---\nlisten: {}\n', 2, ''],
    ['an unknown tag', 'x.yaml', 'naming: !shout x\n', 1, ''],
    ['an alias without an anchor', 'x.yaml', 'naming: *nowhere\n', 1, ''],
    ['an integer that no double holds in YAML', 'x.yaml', 'listen:\n  port: 9007199254740993\n', 2, 'listen.port'],
    [
      'an integer that no double holds in JSON',
      'x.json',
      '{ "listen": {\n"port": 9007199254740993 } }',
      2,
      'listen.port',
    ],
    ['an integer that no double holds in TOML', 'x.toml', '[listen]\nport = 9007199254740993\n', 2, ''],
    ['a number beyond every double in YAML', 'x.yaml', 'listen:\n  port: 1e400\n', 2, 'listen.port'],
    ['half a character', 'x.json', '{\n"naming": "\\ud800" }', 2, 'naming'],
    ['a comment in JSON', 'x.json', '{ // no\n}', 1, ''],
    ['an unfinished list', 'x.json', '{\n  "environment": [', 2, ''],
    ['unfinished TOML', 'x.toml', '[listen]\nhost = "a\n', 2, ''],
    ['an empty file', 'x.yaml', '', 1, ''],
    ['only comments', 'x.yaml', '# nothing\n', 1, ''],
    ['a map without entries', 'x.yaml', 'listen: {}\nservers:\n', 2, 'servers'],
    ['an unknown ending', 'x.ini', 'listen: {}', 1, ''],
  ])('refuses %s with its place', (_, file, text, line, key) => {
    expect(problemsOf(file, text)[0]).toMatchObject({ file, line, key })
  })

  it('refuses aliases that unfold without end, at once', () => {
    const rows = Array.from({ length: 30 }, (_, row) => `a${row + 1}: &a${row + 1} [${`*a${row}, `.repeat(9)}*a${row}]`)
    const before = performance.now()
    const problems = problemsOf('x.yaml', `a0: &a0 [x]\n${rows.join('\n')}\n`)
    expect(problems[0]?.message).toContain('aliases')
    expect(performance.now() - before).toBeLessThan(1000)
  })

  it.each(['x.yaml', 'x.json', 'x.toml'])('refuses endless nesting in %s instead of running out of stack', (file) => {
    const deep = '['.repeat(50_000)
    expect(problemsOf(file, file.endsWith('toml') ? `a = ${deep}` : deep).length).toBeGreaterThan(0)
    const closed = `${deep}${']'.repeat(50_000)}`
    expect(problemsOf(file, file.endsWith('toml') ? `a = ${closed}` : closed).length).toBeGreaterThan(0)
  })

  it.each(['x.yaml', 'x.json', 'x.toml'])('answers any text in %s with a configuration or with problems', (file) => {
    const bits = fc.constantFrom(
      'listen',
      'servers',
      'a',
      ': ',
      '\n',
      '  ',
      '- ',
      '{',
      '}',
      '[',
      ']',
      '"',
      "'",
      '=',
      '.',
      '#',
      '*a',
      '&a ',
      '1',
      ',',
      '"""',
      '\\',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(bits, { maxLength: 30 }).map((parts) => parts.join('')),
        ),
        (text) => {
          const reading = parseConfig(file, text)
          if (!reading.ok) expect(reading.problems[0]).toMatchObject({ file, line: expect.any(Number) })
        },
      ),
      { numRuns: 500 },
    )
  })

  it('never repeats a value, because a secret may stand in the wrong place', () => {
    const secret = 'hunter2hunter2'
    const texts: [string, string][] = [
      ['x.yaml', `servers: { a: { transport: http, url: "https://a.example", headers: { A: [${secret}] } } }`],
      ['x.yaml', `servers: { a: { transport: ${secret}, url: x } }`],
      ['x.yaml', `servers: { a: { transport: http, url: "https://a.example", headers: { A: "\${${secret} x}" } } }`],
      ['x.yaml', `a: "${secret}\n b: 1`],
      ['x.json', `{ "a": "${secret}" "b": 1 }`],
      ['x.toml', `a = "${secret}" "b"`],
    ]
    for (const [file, text] of texts) {
      const problems = problemsOf(file, text)
      expect(problems.length).toBeGreaterThan(0)
      expect(JSON.stringify(problems)).not.toContain(secret)
    }
  })

  it('makes control characters in names visible before they reach a terminal', () => {
    expect(linesOf('x.yaml', '"a\\e[31m": 1\n')[0]).toContain('a\\u{1b}[31m')
  })

  it('carries every problem in one error that names the first', () => {
    const error = toConfigError(problemsOf('x.yaml', 'naming: 1\ndescribe: 2\nlimits: 3\n'))
    expect(error.code).toBe('config-invalid')
    expect(error.message).toBe('x.yaml:1: naming: must be text, not a number; put it in quotes (and 2 more)')
    expect(error.details.problems).toHaveLength(3)
  })
})

describe('how the parts fit', () => {
  it.each([
    ['naming: "{server}{tool}"', 'naming', '_ between'],
    ['naming: "{server}-{tool}"', 'naming', '_ between'],
    ['naming: "_{server}{tool}_"', 'naming', '_ between'],
    ['naming: "{tool}"', 'naming', 'exactly once'],
    ['naming: "{server}_{server}_{tool}"', 'naming', 'exactly once'],
    ['naming: "{server}_{tool}!"', 'naming', 'only letters'],
    ['naming: "{server}_{toool}"', 'naming', 'exactly once'],
    ['describe: "[{sever}] {description}"', 'describe', '{sever}'],
    ['environment: [SALLYPORT_MASTER_KEY]', 'environment.0', 'belong to the gateway'],
    ['environment: [sallyport_x]', 'environment.0', 'belong to the gateway'],
    ['environment: ["*"]', 'environment.0', 'name of one variable'],
    ['listen: { tls: { cert: a.pem } }', 'listen.tls', 'key is missing'],
    ['listen: { tls: { key: a.pem } }', 'listen.tls', 'cert is missing'],
    ['listen: { publicUrl: "ftp://x.example" }', 'listen.publicUrl', 'https://'],
    [`${server}toolsets: { t: { servers: [fils] } }`, 'toolsets.t.servers.0', 'no server'],
    ['agents: { a: { project: shop } }', 'agents.a.project', 'no project'],
    ['servers: { a: { transport: http, url: "https://${HOST" } }', 'servers.a.url', 'without a closing }'],
    ['servers: { a: { transport: stdio, command: "${a-b}" } }', 'servers.a.command', 'neither'],
    ['servers: { a: { transport: stdio, command: x, args: ["${}"] } }', 'servers.a.args.0', 'neither'],
    ['servers: { a: { transport: stdio, command: x, env: { A: "${B:-${C}}" } } }', 'servers.a.env.A', 'fallback'],
    [
      'servers: { a: { transport: stdio, command: x, cwd: "${HOME}" } }',
      'servers.a.cwd',
      'must not contain a template',
    ],
    ['servers: { a: { transport: stdio, command: x, env: { "A=B": x } } }', 'servers.a.env.A=B', 'variable'],
    [
      'servers: { a: { transport: http, url: "https://a.example", headers: { "A B": x } } }',
      'servers.a.headers.A B',
      'header',
    ],
    [
      'servers: { a: { transport: http, url: "https://a.example", headers: { A: "x\\r\\nB: y" } } }',
      'servers.a.headers.A',
      'one line',
    ],
    [
      'servers: { a: { transport: http, url: "https://a.example", headers: { A: x, a: y } } }',
      'servers.a.headers.a',
      'duplicate',
    ],
    ['servers: { sallyport: { transport: http, url: x } }', 'servers.sallyport', 'reserved'],
    [`${server}agents: { a: { servers: { fils: { enabled: false } } } }`, 'agents.a.servers.fils', 'no earlier scope'],
    [
      `${server}agents: { a: { servers: { files: { headers: {} } } } }`,
      'agents.a.servers.files.headers',
      'not for stdio',
    ],
    [
      `${server}projects: { p: { servers: { files: { command: uvx } } } }`,
      'projects.p.servers.files.transport',
      'replaces',
    ],
  ])('refuses %s', (text, key, words) => {
    const [problem, ...others] = problemsOf('x.yaml', `${text}\n`)
    expect(problem).toMatchObject({ key, message: expect.stringContaining(words) })
    expect(others).toEqual([])
  })

  it('takes patterns that keep the names of two servers apart', () => {
    for (const naming of ['{server}_{tool}', 'mcp_{server}_{tool}', '{server}__{tool}', '{tool}-_-{server}']) {
      expect(configOf(`naming: "${naming}"`).naming).toBe(naming)
    }
  })

  it('lets a toolset name servers that only a project has, and globs that match nothing yet', () => {
    const project = 'projects: { p: { servers: { own: { transport: http, url: "https://a.example" } } } }'
    expect(configOf(`${project}\ntoolsets: { t: { servers: [own, "later-*"] } }`).toolsets.t).toBeDefined()
  })
})

describe('a file on disk', () => {
  it('is refused when it is too large, not text, or not UTF-8, with the line', async () => {
    await using folder = await createFolder()
    const large = await folder.write('large.yaml', `# ${'x'.repeat(4 * 1_048_576)}`)
    const binary = await folder.write('binary.yaml', 'listen: {}\n# \0\n')
    const latin = await folder.write('latin.yaml', Buffer.from('listen: {}\n\n# caf\xe9\n', 'latin1'))
    expect(await readConfig(large)).toMatchObject({ ok: false, problems: [{ message: 'is larger than 4 MB' }] })
    expect(await readConfig(binary)).toMatchObject({
      ok: false,
      problems: [{ line: 2, message: 'contains a NUL character' }],
    })
    expect(await readConfig(latin)).toMatchObject({ ok: false, problems: [{ line: 3, message: 'is not UTF-8 text' }] })
  })

  it('may begin with a byte order mark and end its lines as Windows does', async () => {
    await using folder = await createFolder()
    const file = await folder.write('a.toml', '\ufeffnaming = "x_{server}_{tool}"\r\n[listen]\r\nport = 1\r\n')
    expect(await readConfig(file)).toMatchObject({ ok: true, config: { listen: { port: 1 } } })
  })

  it('that does not exist, or is a folder, is unreadable', async () => {
    await using folder = await createFolder()
    await expect(readConfig(join(folder.path, 'no.yaml'))).rejects.toMatchObject({
      code: 'config-unreadable',
      message: expect.stringContaining('does not exist'),
    })
    await mkdir(join(folder.path, 'folder.yaml'))
    await expect(readConfig(join(folder.path, 'folder.yaml'))).rejects.toMatchObject({ code: 'config-unreadable' })
  })

  it('may be a link', async () => {
    await using folder = await createFolder()
    await symlink(await folder.write('real.yaml', 'listen: { port: 5 }\n'), join(folder.path, 'link.yaml'))
    expect(await readConfig(join(folder.path, 'link.yaml'))).toMatchObject({ ok: true })
  })
})

describe('finding the file', () => {
  it('prefers the option, then the variable, then this folder, then the data folder', async () => {
    await using folder = await createFolder()
    const cwd = join(folder.path, 'cwd')
    const dataFolder = join(folder.path, 'data')
    await mkdir(cwd)
    await mkdir(dataFolder)
    const find = (explicit?: string, variable?: string) =>
      findConfigFile({ explicit, environment: { SALLYPORT_CONFIG: variable }, cwd, dataFolder })
    expect(find()).toBeUndefined()
    await folder.write('data/sallyport.yaml', '{}')
    expect(find()).toBe(join(dataFolder, 'sallyport.yaml'))
    await folder.write('cwd/sallyport.toml', '')
    expect(find()).toBe(join(cwd, 'sallyport.toml'))
    await folder.write('cwd/sallyport.yml', '{}')
    expect(find(undefined, '')).toBe(join(cwd, 'sallyport.yml'))
    expect(find(undefined, '/etc/gate.yaml')).toBe('/etc/gate.yaml')
    expect(find('other.json', '/etc/gate.yaml')).toBe(join(cwd, 'other.json'))
  })
})

describe('the file of a first start', () => {
  it('is valid without a demo server too', () => {
    expect(configOf(starterConfig({})).servers).toEqual({})
  })

  it('is valid and starts the demo server, whatever its path holds', () => {
    for (const demo of ['/opt/sallyport/server.mjs', 'C:\\Program Files\\"x"\\server.mjs', "/o'x/#y: {z}"]) {
      const config = configOf(starterConfig({ demo }))
      expect(config.servers.demo).toMatchObject({ transport: 'stdio', command: 'node', args: [demo] })
      expect(config.rules).toEqual([])
    }
  })
})
