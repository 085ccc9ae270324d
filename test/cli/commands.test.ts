import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collect, type Fields, findFreePort, recording, runCli, type Served, serveHere, startCli } from './support.ts'

let gateway: Served
let record: string

beforeAll(async () => {
  gateway = await serveHere({
    servers: { rec: recording('--record', 'RECORD'), spare: { ...recording(), enabled: false } },
    rules: [
      { tools: 'rec_write_thing', action: 'allow' },
      { tools: 'rec_idempotent_thing', action: 'deny', name: 'no way' },
    ],
    toolsets: { small: { tools: ['rec_echo', 'rec_fail'] } },
    agents: { reviewer: { servers: { rec: { enabled: false } } } },
  })
  record = join(gateway.data, 'servers', 'rec', 'RECORD')
  await gateway.run('servers', 'reconnect', 'rec')
})

afterAll(() => gateway?.[Symbol.asyncDispose]())

function items(document: Fields): Fields[] {
  return Array.isArray(document.items) ? document.items : []
}

/** A server whose tools say nothing about themselves. */
const silentServer = `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
  const plain = (name) => ({ name, description: '', inputSchema: { type: 'object' } })
  const info = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'silent', version: '1' } }
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line)
    if (method === 'initialize') say({ id, result: info })
    else if (method === 'tools/list') say({ id, result: { tools: [plain('list_things'), plain('drop_table')] } })
    else if (id) say({ id, error: { code: -32601, message: 'unknown' } })
  })
`

describe('a command with a relative path', () => {
  it('runs in the folder in which it was added, where the path leads', async () => {
    await writeFile(join(gateway.folder, 'server.cjs'), silentServer)
    const added = await gateway.run('servers', 'add', 'here', '--', process.execPath, './server.cjs')
    expect(added).toMatchObject({ code: 0 })
    expect(added.stderr).toContain(
      `./server.cjs is in the current folder, so the command will run there (cwd: ${gateway.folder})`,
    )
    expect((await gateway.run('servers', 'get', 'here', '--json')).json()).toMatchObject({
      state: 'connected',
      definition: { cwd: gateway.folder },
    })
    expect((await gateway.run('servers', 'remove', 'here', '--yes')).code).toBe(0)
  })
})

describe('servers risks', () => {
  it('says when tools have no annotations, shows suggestions, and saves them only after a yes', async () => {
    const added = await gateway.run('servers', 'add', 'silent', '--', process.execPath, '-e', silentServer)
    expect(added).toMatchObject({ code: 0 })
    expect(added.stderr).toContain('2 of 2 tools have no annotations, so every call of these tools requires approval')
    expect(added.stderr).toContain('sallyport servers risks silent --suggest')
    const shown = await gateway.run('servers', 'risks', 'silent', '--suggest')
    expect(shown).toMatchObject({ code: 0, stdout: 'Nothing was saved.\n' })
    expect(shown.stderr).toMatch(/list_things +write +read +the name contains "list"/)
    const listed = await gateway.run('servers', 'risks', 'silent', '--json')
    expect(items(listed.json())).toMatchObject([{ risk: 'write' }, { risk: 'write', suggested: { risk: 'danger' } }])
    expect(await gateway.run('servers', 'risks', 'silent', '--suggest', '--yes')).toMatchObject({ code: 0 })
    const after = await gateway.run('servers', 'risks', 'silent')
    expect(after.stdout).toMatch(/list_things +read +set in the configuration/)
    expect(after.stdout).toMatch(/drop_table +danger +set in the configuration/)
    expect((await gateway.run('servers', 'remove', 'silent', '--yes')).code).toBe(0)
  })
})

describe('status', () => {
  it('says in one look that all is well', async () => {
    const people = await gateway.run('status')
    expect(people.code).toBe(0)
    expect(people.stdout).toMatch(/^healthy\n/)
    expect(people.stdout).toMatch(/rec +global +connected +\d+/)
    const document = (await gateway.run('status', '--json')).json()
    expect(document).toMatchObject({ healthy: true, url: gateway.url, storage: { kind: 'sqlite' } })
  })

  it('takes the options of every command before and after its name', async () => {
    for (const words of [
      ['--json', '--data', gateway.data, 'status'],
      ['status', '--data', gateway.data, '--json'],
      ['--data', gateway.data, 'servers', '--json', 'list'],
    ]) {
      expect((await runCli(words)).json()).toBeTypeOf('object')
    }
  })

  it('finds the gateway by the environment', async () => {
    const byFolder = await runCli(['status'], { env: { SALLYPORT_DATA: gateway.data } })
    expect(byFolder.code).toBe(0)
    const token = (await readFile(join(gateway.data, 'admin-token'), 'utf8')).trim()
    const env = { SALLYPORT_URL: gateway.url, SALLYPORT_TOKEN: token }
    expect((await runCli(['status'], { env })).code).toBe(0)
  })

  it('ends with 3 for a token that is not known', async () => {
    const ended = await runCli(['status', '--url', gateway.url, '--token', 'sp_0000000000_nonsense', '--json'])
    expect(ended.code).toBe(3)
    expect(ended.json()).toMatchObject({ error: { code: 'token-invalid' } })
  })
})

describe('servers', () => {
  it('are added with a command after --, shown with their tools, switched and removed', async () => {
    const { command, args } = recording()
    const added = await gateway.run('servers', 'add', 'extra', '--description', 'Another one', '--', command, ...args)
    expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^extra: connected, \d+ tools/) })
    expect(added.stderr).toContain('rights of the gateway')
    expect(added.stderr).toContain('Next: sallyport tools list --server extra')

    const detail = (await gateway.run('servers', 'get', 'extra', '--json')).json()
    expect(detail).toMatchObject({ name: 'extra', state: 'connected', description: 'Another one' })
    expect(await readFile(join(gateway.folder, 'sallyport.yaml'), 'utf8')).toContain('extra:')

    expect((await gateway.run('servers', 'add', 'extra', '--', command)).code).toBe(1)
    expect((await gateway.run('servers', 'disable', 'extra', '--json')).json()).toMatchObject({ state: 'disabled' })
    expect((await gateway.run('servers', 'enable', 'extra', '--json')).json()).toMatchObject({ state: 'connected' })
    expect((await gateway.run('servers', 'remove', 'extra')).stdout).toBe('Removed extra.\n')
    expect((await gateway.run('servers', 'get', 'extra')).code).toBe(1)
  })

  it('that do not connect are saved all the same, with the class of the failure and what to do', async () => {
    const port = await findFreePort()
    const added = await gateway.run('servers', 'add', 'away', '--url', `http://127.0.0.1:${port}/mcp`)
    expect(added.code).toBe(8)
    expect(added.stdout).toMatch(/^away: (failed|disconnected)/)
    expect(added.stderr).toMatch(/warning: away is saved, but not connected\n {2}unreachable: /)
    expect((await gateway.run('status', '--json')).json()).toMatchObject({ healthy: false })
    expect((await gateway.run('servers', 'remove', 'away', '--yes')).code).toBe(0)
  })

  it('with an address that is none are refused by REST as well, and nothing is saved', async () => {
    const token = (await readFile(join(gateway.data, 'admin-token'), 'utf8')).trim()
    for (const url of ['notaurl', 'ftp://example.com', 'https://me:hunter2@example.com/mcp']) {
      const definition = { transport: 'http', url }
      const reply = await gateway.fetch('/api/servers', { method: 'POST', token, body: { name: 'wrong', definition } })
      expect(reply.status).toBe(400)
      const text = await reply.text()
      expect(text).toMatch(/must (be a complete|not contain)/)
      expect(text).not.toContain('hunter2')
    }
    expect((await gateway.run('servers', 'get', 'wrong')).code).toBe(1)
  })

  it('may have an address that a variable makes whole', async () => {
    const added = await gateway.run(
      'servers',
      'add',
      'later',
      '--disabled',
      '--url',
      'https://${TENANT}.example.com:${PORT}/',
    )
    expect(added.code).toBe(0)
    expect((await gateway.run('servers', 'remove', 'later', '--yes')).code).toBe(0)
  })

  it('are listed for people and for programs', async () => {
    const people = await gateway.run('servers', 'list')
    expect(people.stdout).toMatch(/^NAME +SCOPE +TRANSPORT +STATE +SINCE +TOOLS/)
    const document = (await gateway.run('servers', 'list', '--json')).json()
    expect(document.next).toBeNull()
    expect(items(document)).toContainEqual(
      expect.objectContaining({ name: 'spare', state: 'disabled', transport: 'stdio', enabled: false }),
    )
  })

  it('are tried without being saved: 0 when they work, 1 with the class of the failure when not', async () => {
    const { command, args } = recording()
    const good = await gateway.run('servers', 'validate', '--', command, ...args)
    expect(good).toMatchObject({ code: 0, stdout: expect.stringMatching(/^works {2}\d+ tools/) })
    const bad = await gateway.run('servers', 'validate', '--json', '--', 'no-such-program')
    expect(bad.code).toBe(1)
    expect(bad.json()).toMatchObject({ ok: false, failure: { class: 'spawn', hint: expect.any(String) } })
    expect((await gateway.run('servers', 'validate', 'rec')).code).toBe(0)
    expect(items((await gateway.run('servers', 'list', '--json')).json()).map((each) => each.name)).toEqual([
      'rec',
      'spare',
    ])
  })

  it('whose name is mistyped are suggested', async () => {
    const ended = await gateway.run('servers', 'get', 'rex')
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/did you mean rec\?/i)
    const listed = await gateway.run('tools', 'list', '--server', 'rex')
    expect(listed.stderr).toMatch(/did you mean rec\?/i)
  })

  it('show what they wrote to standard error', async () => {
    const document = (await gateway.run('servers', 'logs', 'rec', '--json')).json()
    expect(document).toMatchObject({ lines: expect.any(Array), dropped: 0 })
  })
})

describe('tools', () => {
  it('are listed, searched and explained', async () => {
    expect((await gateway.run('tools', 'list')).stdout).toMatch(/rec_echo +read/)
    const small = (await gateway.run('tools', 'list', '--toolset', 'small', '--json')).json()
    expect(items(small).map((tool) => tool.name)).toEqual(['rec_echo', 'rec_fail'])
    const found = (await gateway.run('tools', 'search', 'echo', '--json')).json()
    expect(items(found)[0]).toMatchObject({ name: 'rec_echo', server: 'rec', risk: 'read' })
    const guide = await gateway.run('tools', 'guide', 'rec')
    expect(guide.stdout).toContain('### `rec_echo`')
    expect(guide.stdout).toContain('sallyport tools call rec_echo --arg text=text')
  })

  it('are called with arguments as their schema wants them, and print text plainly', async () => {
    const ended = await gateway.run('tools', 'call', 'rec_echo', '--arg', 'text=42', '--arg', 'delayMs=1')
    expect(ended).toMatchObject({ code: 0, stdout: '42\n' })
    const recorded = await readFile(record, 'utf8')
    expect(recorded).toContain('{"text":"42","delayMs":1}')
  })

  it('take their arguments from standard input, and answer whole with --json', async () => {
    const words = ['tools', 'call', 'rec_echo', '--args', '-', '--json', '--data', gateway.data]
    const ended = await runCli(words, { input: '{"text":"piped"}' })
    expect(ended.code).toBe(0)
    expect(ended.json()).toMatchObject({
      call: { tool: 'rec_echo', state: 'ok', surface: 'http', principal: 'user:admin-token' },
      result: { content: [{ type: 'text', text: 'piped' }] },
    })
  })

  it('end with 5 when the tool failed', async () => {
    const ended = await gateway.run('tools', 'call', 'rec_fail')
    expect(ended).toMatchObject({ code: 5, stdout: 'The tool failed on purpose\n' })
    const document = await gateway.run('tools', 'call', 'rec_fail', '--json')
    expect(document.code).toBe(5)
    expect(document.json()).toMatchObject({ call: { state: 'tool-error' }, result: { isError: true } })
  })

  it('end with 6 when a rule denies them, and with 7 while a person is asked', async () => {
    const denied = await gateway.run('tools', 'call', 'rec_idempotent_thing')
    expect(denied.code).toBe(6)
    expect(denied.stderr).toContain('no way')
    const asked = await gateway.run('tools', 'call', 'rec_destroy_thing', '--no-wait', '--json')
    expect(asked.code).toBe(7)
    expect(asked.json()).toMatchObject({ call: { state: 'waiting' }, approval: { tool: 'rec_destroy_thing' } })
    expect(await readFile(record, 'utf8')).not.toContain('destroy_thing')
    expect((await gateway.run('tools', 'call', 'rec_write_thing')).code).toBe(0)
  })

  it('whose name is mistyped are suggested', async () => {
    const ended = await gateway.run('tools', 'call', 'rec_ehco', '--arg', 'text=x')
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/did you mean rec_echo\?/i)
    expect((await gateway.run('tools', 'call', 'rec_ehco')).stderr).toMatch(/did you mean rec_echo\?/i)
  })
})

describe('tokens', () => {
  it('are made, shown once, used and revoked', async () => {
    const made = (await gateway.run('tokens', 'create', '--agent', 'bot', '--expires', '30d', '--json')).json()
    expect(made).toMatchObject({ agent: 'bot', token: expect.stringMatching(/^sp_/), expiresAt: expect.any(String) })
    const as = (...words: string[]) => runCli([...words, '--url', gateway.url, '--token', String(made.token)])

    expect((await as('tools', 'call', 'rec_echo', '--arg', 'text=hello')).stdout).toBe('hello\n')
    expect((await as('status')).stdout).toMatch(/^Sallyport .*, healthy\n$/)
    expect((await as('servers', 'list')).code).toBe(3)
    expect((await as('tokens', 'create', '--agent', 'other')).code).toBe(3)
    expect(items((await as('calls', 'list', '--json')).json())).toMatchObject([{ principal: 'agent:bot' }])

    const listed = await gateway.run('tokens', 'list', '--json')
    expect(listed.stdout).not.toContain(String(made.token))
    expect(items(listed.json())).toMatchObject([{ id: made.id, agent: 'bot' }])
    expect((await gateway.run('tokens', 'revoke', String(made.id))).code).toBe(0)
    expect((await as('status')).code).toBe(3)
  })

  it('are printed alone on standard output for people, with the line that connects an agent beside them', async () => {
    const made = await gateway.run('tokens', 'create', '--agent', 'person')
    expect(made.stdout).toMatch(/^sp_\S+\n$/)
    expect(made.stderr).toContain(`claude mcp add --transport http sallyport ${gateway.url}/mcp`)
  })
})

describe('the record', () => {
  it('is listed with filters and page by page', async () => {
    await gateway.run('tools', 'call', 'rec_echo', '--arg', 'text=a')
    const first = (await gateway.run('audit', 'list', '--limit', '2', '--json')).json()
    expect(items(first)).toHaveLength(2)
    const second = (await gateway.run('audit', 'list', '--limit', '2', '--cursor', String(first.next), '--json')).json()
    expect(items(second)).toHaveLength(2)
    expect(items(second)).not.toEqual(items(first))
    const changes = (await gateway.run('audit', 'list', '--kind', 'change', '--json')).json()
    expect(new Set(items(changes).map((entry) => entry.kind))).toEqual(new Set(['change']))
    const denied = (await gateway.run('audit', 'list', '--tool', 'rec_idempotent_thing', '--json')).json()
    expect(items(denied)).toMatchObject([
      { subject: 'rec_idempotent_thing', kind: 'outcome', body: { state: 'denied' } },
    ])
    expect((await gateway.run('audit', 'list', '--principal', 'agent:nobody')).stdout).toBe('No entries.\n')
  })

  it('shows one entry by its id, and all of a call by the id of the call', async () => {
    const called = (await gateway.run('tools', 'call', 'rec_write_thing', '--args', '{"a":1}', '--json')).json()
    const { id } = toFields(called.call)
    const found = (await gateway.run('audit', 'show', String(id), '--json')).json()
    expect(found).toMatchObject({ call: { id, state: 'ok' }, entries: [{ kind: 'intent' }, { kind: 'outcome' }] })
    const [intent] = Array.isArray(found.entries) ? found.entries.map(toFields) : []
    const entry = `${intent?.instance}:${intent?.sequence}`
    expect((await gateway.run('audit', 'show', entry, '--json')).json()).toMatchObject({ entries: [intent] })
    const people = await gateway.run('audit', 'show', String(id))
    expect(people.stdout).toContain('rec_write_thing')
    expect((await gateway.run('calls', 'show', String(id))).stdout).toContain('user:admin-token')
    expect((await gateway.run('audit', 'show', 'call_none')).code).toBe(1)
  })
})

describe('the configuration', () => {
  it('is shown with defaults, and by scope for an agent', async () => {
    const shown = (await gateway.run('config', 'show', '--json')).json()
    expect(shown).toMatchObject({ config: { naming: '{server}_{tool}', limits: { pending: 10 } }, problems: [] })
    expect((await gateway.run('config', 'show')).stdout).toContain('naming: "{server}_{tool}"')
    const effective = (await gateway.run('config', 'show', '--agent', 'reviewer', '--json')).json()
    expect(effective.servers).toContainEqual(
      expect.objectContaining({ name: 'rec', origins: expect.objectContaining({ enabled: 'agent:reviewer' }) }),
    )
  })

  it('is told for an agent, a user or a project, with the scope of each value', async () => {
    const namesOf = async (...whose: string[]) => {
      const { servers } = (await gateway.run('config', 'effective', ...whose, '--json')).json()
      return Array.isArray(servers) ? servers.map(({ name, scope }) => `${name} ${scope}`) : []
    }
    expect(await namesOf('--agent', 'reviewer')).toEqual(['rec agent:reviewer', 'spare global'])
    const added = await gateway.run('servers', 'add', 'own', '--scope', 'user:anna', '--url', 'http://127.0.0.1:9/')
    expect(added.code).toBe(8)
    expect(await namesOf('--user', 'anna')).toEqual(['rec global', 'spare global', 'own user:anna'])
    expect(await namesOf()).toEqual(['rec global', 'spare global'])
    const listed = (await gateway.run('servers', 'list', '--scope', 'user:anna', '--json')).json()
    expect(items(listed)).toMatchObject([{ name: 'own', error: { code: 'egress-denied' } }])
    expect((await gateway.run('servers', 'remove', 'own', '--yes')).code).toBe(0)
    expect((await gateway.run('config', 'effective', '--user', 'a', '--agent', 'b')).code).toBe(2)
  })

  it('is checked without a gateway', async () => {
    const file = join(gateway.folder, 'other.toml')
    await writeFile(file, 'naming = "{server}"\n')
    const bad = await runCli(['config', 'check', file])
    expect(bad).toMatchObject({ code: 2, stdout: expect.stringMatching(/other\.toml:1: naming: /) })
    expect((await runCli(['config', 'check', file, '--json'])).json()).toMatchObject({ valid: false })
    expect((await runCli(['config', 'check'], { cwd: gateway.folder })).code).toBe(0)
  })

  it('has a schema for editors', async () => {
    expect((await runCli(['config', 'schema'])).json()).toMatchObject({ type: 'object', properties: { servers: {} } })
  })
})

function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

it.each([
  ['calls', 'show', 'call_nope'],
  ['audit', 'show', 'call_nope'],
  ['approvals', 'show', 'nope'],
  ['grants', 'revoke', 'nope', '--yes'],
  ['tokens', 'revoke', 'nope', '--yes'],
  ['servers', 'get', 'nope'],
  ['sessions', 'end', 'nope', '--yes'],
  ['agents', 'remove', 'nope', '--yes'],
  ['secrets', 'remove', 'NOPE', '--yes'],
  ['webhooks', 'retry', 'nope'],
  ['tools', 'call', 'nope'],
])('says that an id is not known, with 1 or what a person is needed for with 3: %s %s %s', async (...args) => {
  const ended = await gateway.run(...args.filter((word) => word !== undefined))
  expect([1, 3]).toContain(ended.code)
  expect(ended.stdout).toBe('')
  expect(ended.stderr).toMatch(/^error: .+\n {7}.+\n {7}More: sallyport explain [a-z-]+\n$/)
  expect(ended.stderr).not.toMatch(/ at .*\.js|undefined|NaN/)
})

it('ends quietly when the reader of its answer is gone', async () => {
  for (const args of [
    ['config', 'schema'],
    ['tools', 'guide'],
    ['audit', 'export'],
    ['approvals', 'watch'],
  ]) {
    const child = startCli([...args, '--data', gateway.data], { cwd: gateway.folder })
    const stderr = collect(child, 'stderr')
    child.stdout?.destroy()
    if (args[1] === 'watch') void gateway.run('tools', 'call', 'rec_unmarked_thing', '--no-wait')
    const [code] = await once(child, 'close')
    expect([args.join(' '), code, stderr().replace('Listening.\n', '')]).toEqual([args.join(' '), 0, ''])
  }
})
