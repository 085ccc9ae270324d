import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Listener, type Name, people, type Rest, serveRest, startListener } from './support.ts'

const recording = stdioFixture('recording')
let listener: Listener
let gateway: TestGateway
let rest: Rest

beforeAll(async () => {
  listener = await startListener()
  gateway = await startTestGateway(
    {
      environment: ['GLOBAL_TOKEN'],
      egress: { allow: ['127.0.0.1'] },
      members: { hosts: ['127.0.0.1', '*.example.com'], trustOwn: false },
      servers: {
        files: { ...recording, env: { SETTING: 'in-the-environment' } },
        shared: {
          transport: 'http',
          url: listener.url,
          headers: { authorization: 'Bearer ${GLOBAL_TOKEN}', 'x-literal': 'in-a-header' },
        },
      },
      projects: {
        shop: { owners: ['olga'], servers: { stock: { transport: 'http', url: listener.url } } },
        plain: { servers: { till: { ...recording } } },
      },
    },
    { environment: { GLOBAL_TOKEN: 'global-token-value' } },
  )
  await gateway.reach('shared', 'connected')
  rest = await serveRest(gateway)
})

afterAll(async () => {
  await rest[Symbol.asyncDispose]()
  await gateway.close()
  await listener[Symbol.asyncDispose]()
})

const http = () => ({ transport: 'http', url: listener.url })
const stdio = () => ({ transport: 'stdio', command: process.execPath, args: ['-e', 'process.exit(1)'] })

/** The text of the file, which is what the gateway works from. */
const saved = () => readFile(gateway.configFile, 'utf8')

describe('a member', () => {
  it('adds, changes, tries, reconnects, switches and removes a server of their own', async () => {
    const added = await rest.ask('anna', 'POST', '/servers', { name: 'mine', scope: 'user:me', definition: http() })
    expect(added).toMatchObject({
      status: 201,
      body: { id: 'mine@user:anna', scope: 'user:anna', state: 'connected', definition: { url: listener.url } },
    })
    expect(JSON.parse(await saved()).users).toEqual({ anna: { servers: { mine: http() } } })

    const changed = await rest.ask('anna', 'PUT', '/servers/mine', { definition: { ...http(), description: 'Notes' } })
    expect(changed).toMatchObject({ status: 200, body: { description: 'Notes' } })
    expect(await rest.ask('anna', 'POST', '/servers/mine/validate')).toMatchObject({ body: { ok: true } })
    expect(await rest.ask('anna', 'POST', '/servers/mine/reconnect')).toMatchObject({ status: 200 })
    expect(await rest.ask('anna', 'POST', '/servers/mine/disable')).toMatchObject({ body: { state: 'disabled' } })
    expect(await rest.ask('anna', 'POST', '/servers/mine/enable')).toMatchObject({ body: { state: 'connected' } })
    expect(await rest.ask('anna', 'GET', '/servers/mine/logs')).toMatchObject({ status: 200 })
    expect(await rest.ask('anna', 'DELETE', '/servers/mine?scope=user:anna')).toMatchObject({ status: 200 })
    expect(await rest.ask('anna', 'GET', '/servers/mine')).toMatchObject({ status: 404 })
    const { items } = await gateway.gateway.audit.list({ limit: 20, kind: 'change', subject: 'server:mine' })
    const acts = items.filter(({ principal }) => principal === 'user:anna').map(({ body }) => Object(body).change)
    expect(acts.reverse()).toEqual(['added', 'changed', 'reconnected', 'disabled', 'enabled', 'removed'])
  })

  it('has it for themselves and their agents, and nobody else has it', async () => {
    await rest.ask('anna', 'POST', '/servers', { name: 'private', scope: 'user:anna', definition: http() })
    const toolsOf = (who: Name) =>
      gateway.gateway.catalog.listTools(people[who], { kind: 'all' }).filter(({ server }) => server === 'private')
    expect(toolsOf('anna')).toMatchObject([{ name: 'private_peek', risk: 'write' }])
    expect(toolsOf('agent')).toHaveLength(1)
    expect(toolsOf('ben')).toEqual([])
    expect(toolsOf('root')).toEqual([])
    expect(await rest.ask('ben', 'GET', '/servers/private?scope=user:anna')).toMatchObject({ status: 404 })
    expect(await rest.ask('ben', 'GET', '/servers?scope=user:anna')).toMatchObject({ body: { items: [] } })
    expect(await rest.ask('ben', 'DELETE', '/servers/private?scope=user:anna')).toMatchObject({ status: 403 })
    expect(await rest.ask('root', 'GET', '/servers?scope=user:anna')).toMatchObject({
      body: { items: [{ name: 'private' }] },
    })
    await rest.ask('root', 'DELETE', '/servers/private?scope=user:anna')
  })

  it('is not believed about the risk of its tools, whose hints count for nothing with `members.trustOwn: false`', async () => {
    const { body } = await rest.ask('root', 'GET', '/servers/shared')
    expect(body).toMatchObject({ definition: { trust: 'annotations' }, tools: [{ original: 'peek', risk: 'read' }] })
    const added = await rest.ask('anna', 'POST', '/servers', { name: 'hint', scope: 'user:me', definition: http() })
    expect(added.body).toMatchObject({ definition: { trust: 'none' }, tools: [{ original: 'peek', risk: 'write' }] })
    expect(await rest.ask('anna', 'POST', '/servers/validate', { definition: http() })).toMatchObject({
      body: { ok: true, tools: [{ original: 'peek', risk: 'write' }] },
    })
    const trusting = { definition: { ...http(), trust: 'annotations' } }
    expect(await rest.ask('anna', 'PUT', '/servers/hint', trusting)).toMatchObject({ status: 403 })
    expect(await rest.ask('root', 'PUT', '/servers/hint', trusting)).toMatchObject({
      status: 200,
      body: { tools: [{ risk: 'read' }] },
    })
    expect(await rest.ask('anna', 'PUT', '/servers/hint', { definition: http() })).toMatchObject({
      body: { tools: [{ risk: 'write' }] },
    })
    await rest.ask('anna', 'DELETE', '/servers/hint')
  })

  it('sees states and tools of what everybody has, and neither commands nor headers', async () => {
    const list = await rest.ask('anna', 'GET', '/servers')
    expect([list.body.items].flat().map((item) => Object(item).name)).toEqual(['files', 'shared'])
    const { body } = await rest.ask('anna', 'GET', '/servers/files')
    expect(body).toMatchObject({ state: 'connected', definition: { transport: 'stdio', enabled: true } })
    expect([body.tools].flat().length).toBeGreaterThan(3)
    for (const path of ['/servers', '/servers/files', '/servers/shared', '/config/effective']) {
      const text = JSON.stringify(await rest.ask('anna', 'GET', path))
      for (const hidden of ['in-the-environment', 'in-a-header', 'GLOBAL_TOKEN', listener.url, process.execPath]) {
        expect([path, text.includes(hidden)]).toEqual([path, false])
      }
    }
    expect(await rest.ask('anna', 'GET', '/servers/files/logs')).toMatchObject({ status: 403 })
    expect(await rest.ask('anna', 'GET', '/config')).toMatchObject({ status: 403 })
    const seen = JSON.stringify(await rest.ask('otto', 'GET', '/servers/files'))
    expect(seen).toContain('in-the-environment')
  })

  it('sends headers of their own to a server that everybody has, and sees only those', async () => {
    const definition = { headers: { 'x-account': 'anna' } }
    const changed = await rest.ask('anna', 'PUT', '/servers/shared?scope=user:me', { definition })
    expect(changed).toMatchObject({
      status: 200,
      body: { id: 'shared@user:anna', state: 'connected', definition: { headers: { 'x-account': 'anna' } } },
    })
    expect(JSON.stringify(changed.body)).not.toContain('GLOBAL_TOKEN')
    expect(listener.heard()).toContain('x-account\nanna')
    const { body } = await rest.ask('root', 'GET', '/config/effective?user=anna')
    expect([body.servers].flat().find((server) => Object(server).name === 'shared')).toMatchObject({
      origins: { url: 'global', 'headers.authorization': 'global', 'headers.x-account': 'user:anna' },
    })
    await rest.ask('anna', 'DELETE', '/servers/shared?scope=user:me')
  })

  it('switches off for themselves what everybody has, and on again', async () => {
    const off = await rest.ask('anna', 'POST', '/servers/files/disable?scope=user:me')
    expect(off).toMatchObject({ status: 200, body: { enabled: false } })
    const serversOf = (who: Name) =>
      gateway.gateway.catalog.listTools(people[who], { kind: 'all' }).map(({ server }) => server)
    expect(serversOf('anna')).not.toContain('files')
    expect(serversOf('ben')).toContain('files')
    expect(await rest.ask('anna', 'POST', '/servers/files/enable?scope=user:me')).toMatchObject({ status: 200 })
    expect(serversOf('anna')).toContain('files')
    await rest.ask('anna', 'DELETE', '/servers/files?scope=user:me')
  })

  it('cannot put another server behind a name that everybody has', async () => {
    const taken = { name: 'shared', scope: 'user:me', definition: { transport: 'http', url: 'https://x.example.com' } }
    expect(await rest.ask('anna', 'POST', '/servers', taken)).toMatchObject({
      status: 403,
      body: { error: { code: 'forbidden', message: expect.stringContaining('choose a different name') } },
    })
  })

  it('is told which hosts may be added', async () => {
    const definition = { transport: 'http', url: 'https://evil.example' }
    const refused = await rest.ask('anna', 'POST', '/servers', { name: 'evil', scope: 'user:me', definition })
    expect(refused).toMatchObject({
      status: 403,
      body: { error: { message: expect.stringContaining('127.0.0.1, *.example.com') } },
    })
    expect(await rest.ask('anna', 'POST', '/servers/validate', { definition })).toMatchObject({ status: 403 })
    expect(await saved()).not.toContain('evil')
  })

  it('is told what is missing of an entry that is no whole server', async () => {
    const wanted = { name: 'half', scope: 'user:me', definition: { headers: { a: 'b' } } }
    expect(await rest.ask('anna', 'POST', '/servers', wanted)).toMatchObject({ status: 400 })
    expect(await saved()).not.toContain('half')
  })

  it('does not keep an administrator from removing what they have changed for themselves', async () => {
    await rest.ask('root', 'POST', '/servers', { name: 'brief', definition: http() })
    const own = { definition: { headers: { 'x-account': 'anna' } } }
    expect(await rest.ask('anna', 'PUT', '/servers/brief?scope=user:me', own)).toMatchObject({ status: 200 })
    expect(await rest.ask('root', 'DELETE', '/servers/brief')).toMatchObject({ status: 200 })
    expect(gateway.gateway.servers.list().map(({ name }) => name)).not.toContain('brief')
    expect(await rest.ask('anna', 'DELETE', '/servers/brief?scope=user:me')).toMatchObject({ status: 200 })
  })
})

describe('an owner of a project', () => {
  it('changes and tries its servers, and others do not', async () => {
    const definition = { ...http(), description: 'What is left' }
    for (const who of ['anna', 'otto'] as const) {
      for (const [method, path, body] of [
        ['POST', '/servers', { name: 'more', scope: 'project:shop', definition }],
        ['PUT', '/servers/stock?scope=project:shop', { definition }],
        ['DELETE', '/servers/stock?scope=project:shop', undefined],
        ['POST', '/servers/stock/disable?scope=project:shop', undefined],
        ['POST', '/servers/stock/reconnect?scope=project:shop', undefined],
        ['POST', '/servers/stock/validate?scope=project:shop', undefined],
        ['POST', '/servers/validate', { definition: http(), scope: 'project:shop' }],
      ] as const) {
        expect([who, path, (await rest.ask(who, method, path, body)).status]).toEqual([who, path, 403])
      }
    }
    expect(await rest.ask('olga', 'PUT', '/servers/stock', { definition })).toMatchObject({
      status: 200,
      body: { scope: 'project:shop', description: 'What is left', state: 'connected' },
    })
    expect(await rest.ask('olga', 'POST', '/servers/stock/validate')).toMatchObject({ body: { ok: true } })
    expect(await rest.ask('olga', 'GET', '/servers/stock')).toMatchObject({
      body: { definition: { url: listener.url } },
    })
    expect(await rest.ask('anna', 'GET', '/servers/stock?scope=project:shop')).toMatchObject({ status: 404 })
  })

  it('has no say in a project of others', async () => {
    const wanted = { name: 'more', scope: 'project:plain', definition: http() }
    expect(await rest.ask('olga', 'POST', '/servers', wanted)).toMatchObject({ status: 403 })
    expect(await rest.ask('root', 'POST', '/servers', wanted)).toMatchObject({ status: 201 })
    await rest.ask('root', 'DELETE', '/servers/more?scope=project:plain')
  })
})

describe('commands', () => {
  const override = { args: ['-e', 'evil'] }
  const attempts: [path: string, method: string, body: (scope: string) => unknown][] = [
    ['/servers', 'POST', (scope) => ({ name: 'shell', scope, definition: stdio() })],
    ['/servers', 'POST', (scope) => ({ name: 'shell', scope, ...stdio() })],
    ['/servers', 'POST', (scope) => ({ name: 'files', scope, definition: override })],
    ['/servers/stock', 'PUT', () => ({ definition: stdio() })],
    ['/servers/stock', 'PUT', () => stdio()],
    ['/servers/files', 'PUT', () => ({ definition: override })],
    ['/servers/files', 'PUT', () => ({ definition: { env: { NODE_OPTIONS: '--require=/tmp/x.js' } } })],
    ['/servers/files', 'PUT', () => ({ definition: { env: { LD_PRELOAD: '/tmp/x.so' } } })],
    ['/servers/validate', 'POST', (scope) => ({ definition: stdio(), scope })],
    ['/servers/validate', 'POST', () => stdio()],
    ['/servers/files/validate', 'POST', () => ({ definition: stdio() })],
    ['/servers/stock/validate', 'POST', () => stdio()],
  ]

  it.each(attempts)('are refused for members and owners at %s %s', async (path, method, body) => {
    const before = await saved()
    for (const [who, scope] of [
      ['anna', 'user:anna'],
      ['anna', 'global'],
      ['anna', 'user:ben'],
      ['olga', 'project:shop'],
      ['otto', 'global'],
      ['agent', 'user:anna'],
    ] as const) {
      const target = path === '/servers' || path === '/servers/validate' ? path : `${path}?scope=${scope}`
      const { status } = await rest.ask(who, method, target, body(scope))
      expect([who, scope, status]).toEqual([who, scope, 403])
    }
    expect(await saved()).toBe(before)
    expect(gateway.gateway.servers.list().map(({ name }) => name)).not.toContain('shell')
  })

  it('are the administrators’, a person’s and the token file’s, in every scope', async () => {
    for (const who of ['root', 'tokenFile'] as const) {
      for (const scope of ['global', 'user:anna', 'project:shop', 'agent:helper']) {
        const wanted = { name: 'shell', scope, definition: stdio() }
        expect(await rest.ask(who, 'POST', '/servers', wanted)).toMatchObject({ status: 201, body: { scope } })
        expect(await rest.ask(who, 'DELETE', `/servers/shell?scope=${scope}`)).toMatchObject({ status: 200 })
      }
    }
  })

  it('that an administrator gave a member are used by them, and not changed', async () => {
    await rest.ask('root', 'POST', '/servers', { name: 'tool', scope: 'user:anna', definition: recording })
    await poll(() =>
      gateway.gateway.catalog.listTools(people.anna, { kind: 'all' }).find(({ server }) => server === 'tool'),
    )
    expect(await rest.ask('anna', 'DELETE', '/servers/tool')).toMatchObject({ status: 403 })
    expect(await rest.ask('anna', 'PUT', '/servers/tool', { definition: http() })).toMatchObject({ status: 403 })
    expect(await rest.ask('anna', 'POST', '/servers/tool/reconnect')).toMatchObject({ status: 200 })
    await rest.ask('root', 'DELETE', '/servers/tool?scope=user:anna')
  })
})

it('knows nobody by `user:me` where only the token file asks', async () => {
  const wanted = { name: 'mine', scope: 'user:me', definition: http() }
  expect(await rest.ask('tokenFile', 'POST', '/servers', wanted)).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining('name the user') } },
  })
})

describe('the tools of servers in one answer', () => {
  const items = (answer: { body: object }): unknown[] => [Object(answer.body).items].flat()

  it('are in the list with annotations and risk, without schemas, in pages', async () => {
    const first = await rest.ask('root', 'GET', '/servers?include=tools&limit=1')
    expect(items(first)).toMatchObject([
      {
        id: 'files',
        state: 'connected',
        tools: expect.arrayContaining([expect.objectContaining({ name: 'files_echo' })]),
      },
    ])
    expect(JSON.stringify(first.body)).toMatch(/"annotations":\{/)
    expect(JSON.stringify(first.body)).toMatch(/"risk":"/)
    expect(JSON.stringify(first.body)).not.toContain('inputSchema')
    const names: unknown[] = items(first).map((item) => Object(item).id)
    for (let next = first.body.next; next !== null; ) {
      const page = await rest.ask('root', 'GET', `/servers?include=tools&limit=1&cursor=${next}`)
      names.push(...items(page).map((item) => Object(item).id))
      next = page.body.next
    }
    const all = items(await rest.ask('root', 'GET', '/servers')).map((item) => Object(item).id)
    expect(names).toEqual([...all].sort())
    expect(await rest.ask('root', 'GET', '/servers?include=tools&cursor=x')).toMatchObject({ status: 400 })
  })

  it('are those of the servers that somebody may see, and show nothing else that is hidden', async () => {
    const list = await rest.ask('anna', 'GET', '/servers?include=tools')
    expect(items(list).map((item) => Object(item).name)).toEqual(['files', 'shared'])
    const effective = await rest.ask('anna', 'GET', '/config/effective?include=state,tools')
    for (const hidden of ['in-the-environment', 'in-a-header', 'GLOBAL_TOKEN', listener.url, process.execPath]) {
      expect(JSON.stringify([list.body, effective.body])).not.toContain(hidden)
    }
  })

  it('are in the effective configuration with the state, and in a disabled server are none', async () => {
    await rest.ask('anna', 'POST', '/servers/files/disable?scope=user:me')
    const ask = async (include: string) => {
      const { body } = await rest.ask('anna', 'GET', `/config/effective${include}`)
      return [body.servers].flat()
    }
    expect(await ask('?include=tools,state')).toMatchObject([
      { name: 'files', state: 'disabled', tools: [] },
      { name: 'shared', state: 'connected', tools: [{ original: 'peek', annotations: { readOnlyHint: true } }] },
    ])
    expect(Object.keys(Object((await ask(''))[1]))).toEqual(['name', 'scope', 'definition', 'origins'])
    await rest.ask('anna', 'DELETE', '/servers/files?scope=user:me')
  })

  it('of an agent are shown to its owner and to administrators, and to nobody else', async () => {
    const { users, agents } = gateway.gateway
    await users.add(people.root, { name: 'anna', role: 'member', password: 'correct horse battery' })
    await agents.add(people.root, { name: 'bare', owner: 'anna' })
    const ask = (who: Name) => rest.ask(who, 'GET', '/config/effective?agent=bare&include=tools')
    for (const who of ['anna', 'root', 'otto'] as const) expect(await ask(who)).toMatchObject({ status: 200 })
    for (const who of ['ben', 'olga', 'agent'] as const) expect(await ask(who)).toMatchObject({ status: 403 })
  })
})

it('tells what holds for whom to those who work under it', async () => {
  const ask = (who: Name, query: string) => rest.ask(who, 'GET', `/config/effective${query}`)
  expect(await ask('root', '?project=shop')).toMatchObject({
    status: 200,
    body: { servers: [{ name: 'files' }, { name: 'shared' }, { name: 'stock', origins: { url: 'project:shop' } }] },
  })
  expect(await ask('olga', '?project=shop')).toMatchObject({ status: 200 })
  expect(await ask('anna', '?project=shop')).toMatchObject({ status: 403 })
  expect(await ask('anna', '?user=anna')).toMatchObject({ status: 200 })
  expect(await ask('anna', '?user=ben')).toMatchObject({ status: 403 })
  expect(await ask('root', '?user=ben&agent=helper')).toMatchObject({ status: 400 })
  expect(await ask('agent', '')).toMatchObject({ status: 403 })
})

it('judges what is asked through the library as well', async () => {
  const wanted = { name: 'shell', scope: 'user:anna' as const, definition: { ...recording, args: [] } }
  await expect(gateway.gateway.servers.add(people.anna, wanted)).rejects.toMatchObject({ code: 'forbidden' })
  await expect(gateway.gateway.servers.enable(people.anna, 'files', false)).rejects.toMatchObject({ code: 'forbidden' })
  await expect(gateway.gateway.servers.remove(people.agent, 'files')).rejects.toMatchObject({ code: 'forbidden' })
  await expect(gateway.gateway.servers.reconnect(people.ben, 'files')).rejects.toMatchObject({ code: 'forbidden' })
})
