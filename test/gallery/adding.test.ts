import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stdioFixture } from '../fixtures/fixtures.ts'
import { type Listener, startListener } from '../scenarios/teams/support.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { addPerson, firstAdministrator, type TestPerson } from '../support/people.ts'

const value = 'tok-0123456789abcdef'
let listener: Listener
let gateway: TestGateway
let ada: TestPerson
let anna: TestPerson

beforeAll(async () => {
  listener = await startListener()
  const token = (name: string) => ({ name, title: 'Token', secret: true, where: 'https://docs.example/tokens' })
  const remote = (name: string) => ({
    id: 'remote',
    title: 'Remote',
    transport: 'http' as const,
    url: listener.url,
    headers: { Authorization: `Bearer \${${name}}` },
    variables: [token(name)],
  })
  const entry = (name: string) => ({ title: 'Docs', purpose: 'Reads docs.', connections: [remote(name)] })
  const { command, args } = stdioFixture('recording')
  gateway = await startTestGateway(
    {
      environment: ['LISTED_TOKEN'],
      egress: { allow: ['127.0.0.1'] },
      gallery: {
        docs: entry('DOCS_TOKEN'),
        other: entry('OTHER_TOKEN'),
        bound: entry('BOUND_TOKEN'),
        taken: entry('TAKEN_TOKEN'),
        listed: entry('LISTED_TOKEN'),
        twice: entry('TWICE_TOKEN'),
        github: { ...entry('GITHUB_TOKEN_OF_THE_TEAM'), title: 'Our GitHub' },
        risky: {
          ...entry('RISKY_TOKEN'),
          connections: [{ id: 'open', title: 'Open', transport: 'http', url: listener.url }],
          risk: { default: 'write', tools: { peek: 'danger', poke: 'write' } },
        },
        local: {
          title: 'Local',
          purpose: 'Runs here.',
          connections: [
            {
              id: 'command',
              title: 'Command',
              transport: 'stdio',
              command,
              args: [...args, '${LOCAL_FOLDER}', '--level=${LOCAL_LEVEL}'],
              variables: [
                { name: 'LOCAL_FOLDER', title: 'Folder', secret: false },
                { name: 'LOCAL_LEVEL', title: 'Level', secret: false, required: false },
              ],
            },
          ],
        },
        hosted: {
          title: 'Hosted',
          purpose: 'Runs on a host.',
          connections: [
            {
              id: 'remote',
              title: 'Remote',
              transport: 'http',
              url: 'https://${HOSTED_NAME}.example.com/mcp',
              variables: [{ name: 'HOSTED_NAME', title: 'Name', secret: false }],
            },
          ],
        },
      },
    },
    { environment: { LISTED_TOKEN: 'listed-token-value' } },
  )
  ada = await firstAdministrator(gateway)
  anna = await addPerson(gateway, ada, 'anna', 'member')
})

afterAll(async () => {
  await gateway.close()
  await listener[Symbol.asyncDispose]()
})

const saved = () => readFile(gateway.configFile, 'utf8')
async function ask(who: TestPerson, method: string, path: string, body?: unknown) {
  const { status, text } = await who.request(method, `/api${path}`, body)
  return { status, text, body: JSON.parse(text) }
}
const add = (who: TestPerson, id: string, body: object = {}) => ask(who, 'POST', `/gallery/${id}/add`, body)
const plan = (who: TestPerson, id: string, body: object = {}) => ask(who, 'POST', `/gallery/${id}/plan`, body)
const secretsOf = async (who: TestPerson) => (await ask(who, 'GET', '/secrets')).body.items

describe('adding a server of the gallery', () => {
  it('names the missing values with their titles and links, and saves nothing', async () => {
    const before = await saved()
    const answer = await add(ada, 'docs')
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'values-missing' } } })
    expect(answer.body.error.details.missing).toMatchObject([
      { name: 'DOCS_TOKEN', title: 'Token', secret: true, state: 'missing', where: 'https://docs.example/tokens' },
    ])
    expect(await saved()).toBe(before)
    expect(await secretsOf(ada)).toEqual([])
  })

  it('stores the secret for this server and this host alone, and writes only its name', async () => {
    const answer = await add(ada, 'docs', { values: { DOCS_TOKEN: value } })
    expect(answer).toMatchObject({ status: 201, body: { name: 'docs', state: 'connected' } })
    expect(answer.text).not.toContain(value)
    expect(listener.heard()).toContain(`Bearer ${value}`)
    expect(await saved()).toContain('Bearer ${DOCS_TOKEN}')
    expect(await saved()).not.toContain(value)
    const host = new URL(listener.url).host
    expect(await secretsOf(ada)).toMatchObject([{ name: 'DOCS_TOKEN', servers: ['docs'], hosts: [host] }])
  })

  it('uses an existing secret without asking', async () => {
    await ask(ada, 'PUT', '/secrets/OTHER_TOKEN', { value: 'other-token-value' })
    expect(await plan(ada, 'other')).toMatchObject({
      status: 200,
      body: { missing: [], variables: [{ state: 'stored' }] },
    })
    expect(await add(ada, 'other')).toMatchObject({ status: 201, body: { state: 'connected' } })
  })

  it('uses a listed environment variable in scopes of administrators only', async () => {
    expect(await plan(ada, 'listed')).toMatchObject({ body: { missing: [] } })
    expect(await plan(anna, 'listed', { scope: 'user:anna' })).toMatchObject({ body: { missing: ['LISTED_TOKEN'] } })
  })

  it('does not use a secret that is bound to another host, and says why', async () => {
    await ask(ada, 'PUT', '/secrets/BOUND_TOKEN', { value: 'bound-token-value', hosts: ['api.example.com'] })
    expect(await plan(ada, 'bound')).toMatchObject({
      body: {
        missing: ['BOUND_TOKEN'],
        variables: [{ state: 'refused', because: expect.stringContaining('api.example.com') }],
      },
    })
    expect(await add(ada, 'bound')).toMatchObject({ status: 400, body: { error: { code: 'values-missing' } } })
  })

  it('never replaces an existing secret', async () => {
    await ask(ada, 'PUT', '/secrets/TAKEN_TOKEN', { value: 'taken-token-value' })
    const answer = await add(ada, 'taken', { values: { TAKEN_TOKEN: 'a-different-value' } })
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'name-taken' } } })
    expect(await saved()).not.toContain('"taken": {\n      "transport"')
    expect(await add(ada, 'taken')).toMatchObject({ status: 201 })
    expect(listener.heard()).toContain('Bearer taken-token-value')
    expect(listener.heard()).not.toContain('a-different-value')
  })

  it('keeps the secret of the first of two requests at the same time', async () => {
    const values = { TWICE_TOKEN: 'twice-token-value' }
    const answers = await Promise.all([add(ada, 'twice', { values }), add(ada, 'twice', { values })])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    expect(await secretsOf(ada)).toContainEqual(expect.objectContaining({ name: 'TWICE_TOKEN' }))
    expect((await gateway.reach('twice', 'connected')).state).toBe('connected')
  })

  it('refuses a name in use before it stores a secret', async () => {
    const answer = await add(ada, 'github', { name: 'docs', values: { GITHUB_TOKEN_OF_THE_TEAM: value } })
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'server-exists' } } })
    expect(await secretsOf(ada)).not.toContainEqual(expect.objectContaining({ name: 'GITHUB_TOKEN_OF_THE_TEAM' }))
  })

  it('leaves out a header whose optional value is missing', async () => {
    const heard = listener.heard().length
    const values = { CUSTOM_URL: listener.url }
    expect(await add(ada, 'custom', { name: 'mine', values })).toMatchObject({
      status: 201,
      body: { state: 'connected' },
    })
    expect(listener.heard().slice(heard).toLowerCase()).not.toContain('authorization')
  })

  it('writes suggested risks for administrators, and for others only those that raise a risk', async () => {
    await add(ada, 'risky')
    expect(gateway.gateway.config.current().servers.risky).toMatchObject({
      defaultRisk: 'write',
      tools: { override: { peek: { risk: 'danger' }, poke: { risk: 'write' } } },
    })
    expect(await add(anna, 'risky', { name: 'hers', scope: 'user:anna' })).toMatchObject({ status: 201 })
    const hers = gateway.gateway.config.current().users.anna?.servers.hers
    expect(hers?.tools?.override).toEqual({ peek: { risk: 'danger' } })
    expect(hers?.defaultRisk).toBeUndefined()
  })
})

describe('a value', () => {
  it.each([
    ['hosted', { HOSTED_NAME: 'evil.example/x' }],
    ['hosted', { HOSTED_NAME: 'user@evil' }],
    ['hosted', { HOSTED_NAME: '${DOCS_TOKEN}' }],
    ['hosted', { HOSTED_NAME: 'a$' }],
    ['local', { LOCAL_FOLDER: '--record' }],
    ['local', { LOCAL_FOLDER: '${DOCS_TOKEN}' }],
    ['local', { LOCAL_FOLDER: '/srv', LOCAL_LEVEL: 'x${DOCS_TOKEN}' }],
    ['custom', { CUSTOM_URL: 'javascript:alert(1)' }],
    ['custom', { CUSTOM_URL: 'https://user:password@a.example/mcp' }],
    ['custom', { CUSTOM_URL: '${DOCS_TOKEN}' }],
    ['docs', { OTHER_TOKEN: 'not-of-this-entry' }],
  ])('cannot change more than its place: %s %j', async (id, values) => {
    const before = await saved()
    const answer = await add(ada, id, { name: 'smuggled', values })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'request-invalid' } } })
    expect(await saved()).toBe(before)
  })

  it('is written as text, and an argument without a value is left out', async () => {
    const { body } = await plan(ada, 'local', { values: { LOCAL_FOLDER: '/srv/{a}' } })
    expect(body.definition.args.slice(-1)).toEqual(['/srv/{a}'])
    expect((await plan(ada, 'hosted', { values: { HOSTED_NAME: 'team' } })).body.definition.url).toBe(
      'https://team.example.com/mcp',
    )
  })
})

describe('a member', () => {
  it('adds a server on the network to their own scope, with their own secret', async () => {
    const values = { OTHER_TOKEN: 'the-token-of-anna' }
    const answer = await add(anna, 'other', { name: 'notes', scope: 'user:anna', values })
    expect(answer).toMatchObject({ status: 201, body: { scope: 'user:anna', state: 'connected' } })
    expect(listener.heard()).toContain('Bearer the-token-of-anna')
    expect(await secretsOf(anna)).toMatchObject([{ name: 'OTHER_TOKEN', scope: 'user:anna' }])
  })

  it('cannot add a command, nor anything to a scope of administrators, and learns nothing about its secrets', async () => {
    const values = { LOCAL_FOLDER: '/srv' }
    expect(await add(anna, 'local', { scope: 'user:anna', values })).toMatchObject({ status: 403 })
    for (const scope of ['global', 'agent:reviewer', 'project:shop', 'user:ada']) {
      const wanted = { name: 'stolen', scope }
      expect(await plan(anna, 'taken', wanted), scope).toMatchObject({ status: 403 })
      expect(await add(anna, 'taken', wanted), scope).toMatchObject({ status: 403 })
    }
  })

  it('is asked for a missing address before the address is judged', async () => {
    expect(await add(anna, 'custom', { scope: 'user:anna' })).toMatchObject({
      status: 400,
      body: { error: { code: 'values-missing' } },
    })
  })
})

describe('the gallery', () => {
  it('lists own entries and built-in entries, and an own entry replaces a built-in entry of the same id', async () => {
    const { body } = await ask(anna, 'GET', '/gallery')
    expect(body.items.length).toBeGreaterThan(60)
    expect(body.items.filter(({ id }: { id: string }) => id === 'github')).toMatchObject([
      { title: 'Our GitHub', own: true },
    ])
    expect((await ask(anna, 'GET', '/gallery/linear')).body).toMatchObject({ title: 'Linear', own: false })
  })

  it('finds entries by all words of a search, the closest first, always in the same order', async () => {
    const find = async (words: string) => {
      const { body } = await ask(anna, 'GET', `/gallery?search=${encodeURIComponent(words)}`)
      return body.items.map(({ id }: { id: string }) => id)
    }
    expect((await find('postgres')).slice(0, 2)).toEqual(['postgres-dbhub', 'postgres-mcp-pro'])
    expect(await find('STRIPE api')).toEqual(['stripe'])
    expect(await find('nothing-like-this')).toEqual([])
    expect(await find('search')).toEqual(await find(' search '))
    expect((await find('search'))[0]).toBe('brave-search')
  })

  it('suggests a similar id', async () => {
    expect(await ask(anna, 'GET', '/gallery/gitlob')).toMatchObject({
      status: 404,
      body: { error: { message: 'The gallery has no entry gitlob. Did you mean gitlab?' } },
    })
  })

  it('shows a plan without a value of a secret', async () => {
    const answer = await plan(ada, 'docs', { name: 'again', values: { DOCS_TOKEN: value } })
    expect(answer).toMatchObject({ status: 200, body: { variables: [{ name: 'DOCS_TOKEN', state: 'given' }] } })
    expect(answer.text).not.toContain(value)
  })

  it.each(['constructor', '__proto__'])('has no entry and no variable %s', async (name) => {
    expect((await ask(ada, 'GET', `/gallery/${name}`)).status).toBeGreaterThanOrEqual(400)
    expect((await plan(ada, 'docs', { name: 'x', values: JSON.parse(`{"${name}":"x"}`) })).status).toBe(400)
  })
})
