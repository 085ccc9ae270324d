import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Ended, recording, runCli, type Serving, serveWith } from '../../cli/support.ts'
import { type ConfigInput, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { addPerson, firstAdministrator, type TestPerson } from '../../support/people.ts'

type Answer = { status: number; body: Record<string, unknown>; text: string }

const url = 'http://127.0.0.1:9/mcp'
const http = (fields: object = {}) => ({ transport: 'http' as const, url, enabled: false, ...fields })
const bearer = (value: string) => http({ headers: { Authorization: `Bearer ${value}` } })

async function rest(gateway: { url: string; folder: string }, method: string, path: string, body?: unknown) {
  const token = (await readFile(join(gateway.folder, 'data', 'admin-token'), 'utf8')).trim()
  const answer = await fetch(`${gateway.url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  const parsed: Answer['body'] = /^\{.*\}$/s.test(text) && !text.includes('\n{') ? JSON.parse(text) : {}
  return { status: answer.status, body: parsed, text }
}

/** Every address that can be read, with the names of this test in the place of its parameters. */
async function readAll(gateway: { url: string; folder: string }, names: Record<string, string>) {
  const { body } = await rest(gateway, 'GET', '/openapi.json')
  const paths = Object.entries(Object(body.paths)).filter(([, methods]) => 'get' in Object(methods))
  const readable = paths.map(([path]) => path).filter((path) => !/events|stream|backup/.test(path))
  expect(readable.length).toBeGreaterThan(25)
  const filled = readable.map((path) => path.replace(/\{(\w+)\}/g, (_, name: string) => names[name] ?? 'none'))
  const answers = await Promise.all(filled.map((path) => rest(gateway, 'GET', path)))
  return answers.map(({ text }, index) => ({ name: `GET ${filled[index]}`, text }))
}

async function readFiles(folder: string, except: RegExp = /^$/) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const wanted = paths.filter((path) => !except.test(path))
  return Promise.all(wanted.map(async (path) => ({ name: path, text: await readFile(path, 'latin1') })))
}

const configIn = (gateway: { folder: string }, file = 'sallyport.json') => readFile(join(gateway.folder, file), 'utf8')

describe('a literal secret that is saved', () => {
  it('by REST, CLI, a session or an edit is in no file, row, answer or log', async () => {
    const canaries = new Map<string, string>()
    const canary = (way: string) => {
      const value = `canary${randomBytes(15).toString('hex')}`
      canaries.set(way, value)
      return value
    }
    const sinks: { name: string; text: string }[] = []
    await using gateway: Serving = await serveWith({ SALLYPORT_LOG: 'debug' }, { servers: { old: http() } })
    const see = (name: string, { text, status }: Answer) => {
      sinks.push({ name, text })
      return status
    }
    async function cli(...args: string[]): Promise<Ended> {
      const ended = await runCli([...args, '--data', gateway.data], { cwd: gateway.folder })
      sinks.push({ name: args.slice(0, 3).join(' '), text: ended.stdout + ended.stderr })
      return ended
    }

    const told = { args: [...recording().args], env: { LOGIN_PASSWORD: canary('a variable') } }
    const definition = { transport: 'stdio', command: process.execPath, ...told }
    expect(see('add', await rest(gateway, 'POST', '/servers', { name: 'local', definition }))).toBe(201)
    expect(see('put', await rest(gateway, 'PUT', '/servers/old', { definition: bearer(canary('a PUT')) }))).toBe(200)
    const inUrl = http({ url: `${url}?api_key=${canary('an address')}`, enabled: true })
    expect(see('url', await rest(gateway, 'POST', '/servers', { name: 'address', definition: inUrl }))).toBe(201)
    const taken = { name: 'old', definition: bearer(canary('a refused server')) }
    expect(see('taken', await rest(gateway, 'POST', '/servers', taken))).toBe(409)
    const wrong = { name: 'x y', definition: bearer(canary('an invalid name')) }
    expect(see('wrong', await rest(gateway, 'POST', '/servers', wrong))).toBe(400)
    const session = { name: 'work', servers: { mail: bearer(canary('a new session')) } }
    expect(see('session', await rest(gateway, 'POST', '/sessions', session))).toBe(201)
    const changed = { servers: { mail: bearer(canary('a changed session')) } }
    expect(see('patch', await rest(gateway, 'PATCH', '/sessions/work', changed))).toBe(200)
    const inSession = { name: 'extra', scope: 'session:work', definition: bearer(canary('a server of a session')) }
    const extra = await rest(gateway, 'POST', '/servers', inSession)
    expect(see('extra', extra)).toBe(201)
    expect(extra.body.secrets).toEqual(['EXTRA_AUTHORIZATION'])

    const header = `Authorization: Bearer ghp_${canary('the CLI')}ABCDEF`
    const added = await cli('servers', 'add', 'github', '--url', url, '--disabled', '--header', header)
    expect(added.stderr).toContain('${GITHUB_AUTHORIZATION}')
    await cli('servers', 'add', 'second', '--disabled', '--env', `API_KEY=${canary('--env')}`, '--', 'node', 'x.js')
    const asJson = JSON.stringify({ command: 'node', args: ['x.js', '--token', canary('an argument')] })
    const third = await cli('servers', 'add', 'third', '--disabled', '--from-json', asJson)
    expect(third.stderr).toContain('warning: third: args.2')
    for (const command of ['config show', 'config check', 'doctor', 'servers get github', 'audit export --json'])
      await cli(...command.split(' '))
    await cli('servers', 'get', 'local', '--json')

    sinks.push(...(await readAll(gateway, { name: 'local', session: 'work' })))
    sinks.push(...(await readAll(gateway, { name: 'address' })))
    await gateway.stop()
    sinks.push({ name: 'output', text: gateway.stdout() + gateway.stderr() }, ...(await readFiles(gateway.folder)))
    const found = [...canaries].flatMap(([way, value]) =>
      sinks.filter(({ text }) => text.includes(value)).map(({ name }) => `${way} in ${name}`),
    )
    expect(found).toEqual([])
    const config = await configIn(gateway, 'sallyport.yaml')
    expect(config).toContain('Authorization: Bearer ${GITHUB_AUTHORIZATION}')
    expect(config).toContain('LOGIN_PASSWORD: ${LOGIN_PASSWORD}')
    expect(config).toContain('secretsInArguments: true')
  })
})

describe('a literal secret in the file', () => {
  const value = `hand${randomBytes(12).toString('hex')}`
  const inProject = `hand${randomBytes(12).toString('hex')}`
  const config: ConfigInput = {
    servers: {
      docs: bearer(value),
      tool: { ...recordingServer(), env: { X_TOKEN: value } },
      other: { ...recordingServer(), args: ['--quiet', `--api-key=${value}`], enabled: false },
      search: http({ url: `${url}?api_key=${value}`, enabled: true }),
    },
    projects: { shop: { owners: ['bob'], servers: { mail: bearer(inProject) } } },
  }
  let gateway: TestGateway
  let ada: TestPerson
  let bob: TestPerson

  beforeAll(async () => {
    gateway = await startTestGateway(config)
    ada = await firstAdministrator(gateway)
    bob = await addPerson(gateway, ada, 'bob', 'member')
  })
  afterAll(() => gateway?.close())

  it('is in no answer, for anybody: [secret] is shown in its place', async () => {
    await gateway.reach('tool', 'connected')
    const own = await bob.request('GET', '/api/servers/mail?scope=project:shop')
    const sinks = [
      ...(await readAll(gateway, { name: 'docs' })),
      ...(await readAll(gateway, { name: 'tool' })),
      ...(await readAll(gateway, { name: 'search' })),
      ...(await readAll(gateway, { name: 'other' })),
      { name: 'project', text: own.text },
      {
        name: 'export',
        text: (await runCli(['audit', 'export', '--json', '--data', join(gateway.folder, 'data')])).stdout,
      },
    ]
    expect(
      sinks.filter(({ text }) => text.includes(value) || text.includes(inProject)).map(({ name }) => name),
    ).toEqual([])
    expect(own.text).toContain('Bearer [secret]')
    expect(JSON.parse((await rest(gateway, 'GET', '/servers/tool')).text).definition.env).toEqual({
      X_TOKEN: '[secret]',
    })
    const { text } = await rest(gateway, 'GET', '/servers/other')
    expect(JSON.parse(text).definition.args).toEqual(['--quiet', '--api-key=[secret]'])
    const masked = gateway.gateway.masking.text(`a ${encodeURIComponent(value)} b`)
    expect(masked).toBe('a [secret] b')
  })

  it('is kept by a change that sends [secret] back, and only for the same address', async () => {
    const { body } = await rest(gateway, 'GET', '/servers/docs')
    const definition = { ...Object(body.definition), description: 'changed' }
    const saved = await rest(gateway, 'PUT', '/servers/docs', { definition })
    expect(saved.status).toBe(200)
    expect(saved.body.secrets).toBeUndefined()
    expect(JSON.parse(await configIn(gateway)).servers.docs).toMatchObject({
      description: 'changed',
      headers: { Authorization: `Bearer ${value}` },
    })
    const away = { definition: { ...definition, url: 'https://attacker.test/mcp' } }
    const renamed = { definition: { ...definition, headers: { 'X-Token': 'Bearer [secret]' } } }
    const added = { name: 'copy', definition }
    const answers = [
      await rest(gateway, 'PUT', '/servers/docs', away),
      await rest(gateway, 'PUT', '/servers/docs', renamed),
      await rest(gateway, 'POST', '/servers', added),
      await rest(gateway, 'POST', '/servers/docs/validate', away),
      await rest(gateway, 'POST', '/servers/validate', { definition }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400])
    expect(answers[0]?.text).toContain('only used with the address or program that it was stored for')
    expect(answers[1]?.text).toContain('headers.X-Token contains [secret]')
    const mail = { ...bearer('[secret]'), url: 'http://example.com/mcp' }
    const byOwner = await bob.request('PUT', '/api/servers/mail?scope=project:shop', { definition: mail })
    expect(byOwner.status).toBe(400)
  })

  it('is reported by the check with its place and the command that stores it', async () => {
    const check = await runCli(['config', 'check', gateway.configFile])
    expect(check.code).toBe(0)
    expect(check.stderr).toMatch(
      /sallyport\.json:\d+: servers\.docs\.headers\.Authorization.*`sallyport secrets set DOCS_AUTHORIZATION`, and write \$\{DOCS_AUTHORIZATION\}/,
    )
    expect(check.stderr).toContain('servers.search.url')
    expect(check.stderr).toContain('secrets set MAIL_AUTHORIZATION --scope project:shop')
    const doctor = await runCli(['doctor', '--data', join(gateway.folder, 'data')], { cwd: gateway.folder })
    expect(doctor.stdout).toContain('secrets set DOCS_AUTHORIZATION')
    expect(check.stderr + doctor.stdout + doctor.stderr).not.toContain(value)
  })
})

function recordingServer() {
  const { command, args } = recording()
  return { transport: 'stdio' as const, command, args }
}

describe('moving a literal', () => {
  let gateway: TestGateway
  let ada: TestPerson
  let bob: TestPerson
  let eve: TestPerson

  beforeAll(async () => {
    gateway = await startTestGateway({
      environment: ['LISTED_TOKEN'],
      projects: { shop: { owners: ['bob', 'eve'] } },
      servers: { reader: http({ headers: { 'X-Api-Key': '${USED_TOKEN}' } }) },
    })
    ada = await firstAdministrator(gateway)
    bob = await addPerson(gateway, ada, 'bob', 'member')
    eve = await addPerson(gateway, ada, 'eve', 'member')
  })
  afterAll(() => gateway?.close())

  const stdio = (env: Record<string, string>) => ({ transport: 'stdio', command: 'node', enabled: false, env })
  const add = async (person: TestPerson, name: string, definition: object, more: object = {}) => {
    const { status, text } = await person.request('POST', '/api/servers', { name, definition, ...more })
    const body: { secrets?: string[]; warnings?: string[]; definition?: unknown; error?: unknown } = JSON.parse(text)
    return { status, ...body }
  }
  const listed = async (person: TestPerson) => {
    const { text } = await person.request('GET', '/api/secrets')
    const { items }: { items: { name: string; scope: string; servers: string[]; hosts: string[] }[] } = JSON.parse(text)
    return items
  }

  it('binds the secret to the server and its host', async () => {
    const added = await add(
      ada,
      'bound',
      http({ url: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer abc-1' } }),
    )
    expect(added).toMatchObject({
      status: 201,
      secrets: ['BOUND_AUTHORIZATION'],
      definition: { headers: { Authorization: 'Bearer ${BOUND_AUTHORIZATION}' } },
    })
    expect((await listed(ada)).find(({ name }) => name === 'BOUND_AUTHORIZATION')).toMatchObject({
      scope: 'global',
      servers: ['bound'],
      hosts: ['mcp.example.com'],
    })
  })

  it('uses an equal secret of the same author again, and gives another value another name', async () => {
    const put = async (value: string) => {
      const { text } = await ada.request('PUT', '/api/servers/again', { definition: stdio({ AGAIN_TOKEN: value }) })
      return JSON.parse(text).secrets
    }
    expect((await add(ada, 'again', stdio({ AGAIN_TOKEN: 'one' }))).secrets).toEqual(['AGAIN_TOKEN'])
    expect(await put('one')).toEqual(['AGAIN_TOKEN'])
    expect(await put('two')).toEqual(['AGAIN_TOKEN_2'])
    expect(await put('two')).toEqual(['AGAIN_TOKEN_2'])
  })

  it('never takes a name that changes what another text means', async () => {
    const env = { USED_TOKEN: 'abc', LISTED_TOKEN: 'abc' }
    expect((await add(ada, 'names', stdio(env))).secrets).toEqual(['USED_TOKEN_2', 'LISTED_TOKEN_2'])
    const beside = { A_TOKEN: '${B_TOKEN}', B_TOKEN: 'abc' }
    expect((await add(ada, 'beside', stdio(beside))).secrets).toEqual(['B_TOKEN_2'])
  })

  it('does not tell whether a guess is the value of another owner', async () => {
    const scope = 'project:shop'
    const definition = (value: string) => ({ ...bearer(value), url: 'http://example.com/mcp' })
    expect((await add(bob, 'mail', definition('right'), { scope })).secrets).toEqual(['MAIL_AUTHORIZATION'])
    const guess = async (value: string) => {
      const { text } = await eve.request('PUT', `/api/servers/mail?scope=${scope}`, { definition: definition(value) })
      return JSON.parse(text).secrets
    }
    expect(await guess('right')).toEqual(['MAIL_AUTHORIZATION_2'])
    expect(await guess('wrong')).toEqual(['MAIL_AUTHORIZATION_3'])
  })

  it('leaves no secret behind when the change is refused', async () => {
    const before = await listed(ada)
    expect((await add(ada, 'reader', stdio({ LEFT_TOKEN: 'abc' }))).status).toBe(409)
    expect((await add(ada, 'broken', http({ headers: { 'x-key': 'abc', other: '${' } }))).status).toBe(400)
    expect((await add(bob, 'local', stdio({ LEFT_TOKEN: 'abc' }), { scope: 'user:bob' })).status).toBe(403)
    expect((await add(bob, 'global', bearer('abc'))).status).toBe(403)
    const session = { name: 'refused', servers: { local: stdio({ LEFT_TOKEN: 'abc' }) } }
    expect((await bob.request('POST', '/api/sessions', session)).status).toBe(403)
    expect(await listed(ada)).toEqual(before)
  })

  it('cannot fill the list of masked values: members may store few at once, and tests of members store none', async () => {
    const headers = Object.fromEntries(
      Array.from({ length: 11 }, (_, index) => [`x-key-${index}`, `flood-value-${index}`]),
    )
    const definition = http({ url: 'http://example.invalid/mcp', headers })
    expect((await add(bob, 'flood', definition, { scope: 'user:me' })).status).toBe(400)
    const session = { name: 'flood', servers: { flood: definition } }
    expect((await bob.request('POST', '/api/sessions', session)).status).toBe(400)
    await bob.request('POST', '/api/servers/validate', { definition: { ...definition, enabled: true } })
    expect(gateway.gateway.masking.text('flood-value-1')).toBe('flood-value-1')
  })

  it('keeps a secret of a member in the scope of the member', async () => {
    const definition = { ...bearer('abc-own'), url: 'http://example.com/mcp' }
    expect((await add(bob, 'own', definition, { scope: 'user:me' })).secrets).toEqual(['OWN_AUTHORIZATION'])
    expect((await listed(bob)).filter(({ name }) => name === 'OWN_AUTHORIZATION')).toMatchObject([
      { scope: 'user:bob' },
    ])
    expect((await listed(eve)).filter(({ name }) => name === 'OWN_AUTHORIZATION')).toEqual([])
  })

  it('is switched off by keepLiteral, only for administrators and with a warning', async () => {
    const added = await add(ada, 'kept', stdio({ KEPT_TOKEN: 'kept-abc' }), { keepLiteral: true })
    expect(added).toMatchObject({
      status: 201,
      warnings: ['kept: env.KEPT_TOKEN is a secret in plain text in the configuration'],
    })
    expect(added.secrets).toBeUndefined()
    expect(added.definition).toMatchObject({ env: { KEPT_TOKEN: '[secret]' } })
    expect(JSON.parse(await configIn(gateway)).servers.kept.env).toEqual({ KEPT_TOKEN: 'kept-abc' })
    const definition = { ...bearer('abc'), url: 'http://example.com/mcp' }
    const refused = await add(bob, 'kept-by-member', definition, { scope: 'user:me', keepLiteral: true })
    expect(refused.status).toBe(403)
  })
})
