import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Listener, type Name, people, type Rest, serveRest, startListener } from './support.ts'

const password = 'correct horse battery'
let listener: Listener
let gateway: TestGateway
let rest: Rest

beforeAll(async () => {
  listener = await startListener()
  gateway = await startTestGateway({
    egress: { allow: ['127.0.0.1'] },
    rules: [
      { tools: 'x_*', project: 'plain', action: 'deny' },
      { tools: 'y_*', project: 'glob*', action: 'deny' },
    ],
    projects: { plain: { owners: ['olga'], rules: [{ project: 'plain', action: 'ask' }] }, globbed: {} },
    agents: { worker: { project: 'plain' } },
  })
  for (const name of ['anna', 'olga']) await gateway.gateway.users.add(people.root, { name, role: 'member', password })
  rest = await serveRest(gateway)
})
afterAll(async () => {
  await rest[Symbol.asyncDispose]()
  await gateway.close()
  await listener[Symbol.asyncDispose]()
})

const ask = (who: Name, method: string, path: string, body?: object) => rest.ask(who, method, `/projects${path}`, body)
const saved = async () => JSON.parse(await readFile(gateway.configFile, 'utf8'))
const messageOf = ({ body }: { body: object }) => String(Object(Object(body).error).message)
const changesOf = async (subject: string) => {
  const { items } = await gateway.gateway.audit.list({ limit: 100 })
  return items.filter((entry) => entry.kind === 'change' && entry.subject === subject)
}

describe('a project over REST', () => {
  it('is created by an administrator, with owners who exist, and recorded with its author', async () => {
    const wanted = { name: 'shop', title: 'Web shop', owners: ['anna'] }
    expect(await ask('root', 'POST', '', wanted)).toMatchObject({
      status: 201,
      body: { ...wanted, servers: [], rules: 0 },
    })
    expect((await saved()).projects.shop).toEqual({ title: 'Web shop', owners: ['anna'] })
    expect(await changesOf('project:shop')).toContainEqual(
      expect.objectContaining({ principal: 'user:root', body: expect.objectContaining({ change: 'project-added' }) }),
    )
    expect(await ask('root', 'POST', '', wanted)).toMatchObject({
      status: 409,
      body: { error: { code: 'name-taken' } },
    })
    const stranger = await ask('root', 'POST', '', { name: 'other', owners: ['nobody'] })
    expect(stranger).toMatchObject({ status: 404 })
  })

  it.each(['anna', 'olga', 'otto', 'agent'] as const)('is not created or changed by %s', async (who) => {
    expect(await ask(who, 'POST', '', { name: 'mine' })).toMatchObject({ status: 403 })
    expect(await ask(who, 'PATCH', '/plain', { owners: ['anna'] })).toMatchObject({ status: 403 })
    expect(await ask(who, 'PATCH', '/plain', { repository: { path: '/etc' } })).toMatchObject({ status: 403 })
  })

  it('gets other owners and another title', async () => {
    const { body } = await ask('root', 'PATCH', '/shop', { owners: ['anna', 'olga'], title: null })
    expect(body).toMatchObject({ name: 'shop', owners: ['anna', 'olga'] })
    expect((await saved()).projects.shop).toEqual({ owners: ['anna', 'olga'] })
  })

  it('keeps an owner while it has servers or rules of its owners, which would be trusted without one', async () => {
    const refused = await ask('root', 'PATCH', '/plain', { owners: [] })
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('keep an owner')])
    expect(gateway.gateway.config.trusts('project:plain')).toBe(false)
    expect(await ask('root', 'PATCH', '/shop', { owners: [] })).toMatchObject({ status: 200, body: { owners: [] } })
    await ask('root', 'PATCH', '/shop', { owners: ['anna'] })
  })
})

describe('a renamed project', () => {
  it('takes its agents and the rules about it along, in one change', async () => {
    const before = (await gateway.gateway.audit.list({ limit: 1000 })).items.length
    expect(await ask('root', 'PATCH', '/plain', { name: 'store' })).toMatchObject({
      status: 200,
      body: { name: 'store' },
    })
    const file = await saved()
    expect(file.projects.store).toEqual({ owners: ['olga'], rules: [{ project: 'store', action: 'ask' }] })
    expect(file.projects.plain).toBeUndefined()
    expect(file.agents.worker.project).toBe('store')
    expect(file.rules).toMatchObject([{ project: 'store' }, { project: 'glob*' }])
    const { items } = await gateway.gateway.audit.list({ limit: 1000 })
    expect(items.slice(0, items.length - before)).toContainEqual(
      expect.objectContaining({
        principal: 'user:root',
        body: expect.objectContaining({ change: 'project-renamed', from: 'plain', to: 'store' }),
      }),
    )
    expect(await ask('root', 'GET', '/plain')).toMatchObject({ status: 404 })
  })

  it('is refused with the list of what is in the way: secrets, sessions, servers and patterns', async () => {
    const { secrets, sessions } = gateway.gateway
    await secrets.set(people.root, { scope: 'project:shop', name: 'SHOP_KEY', value: 'a-long-secret-value' })
    const refused = await ask('root', 'PATCH', '/shop', { name: 'market' })
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('secret SHOP_KEY')])
    await secrets.remove(people.root, 'project:shop', 'SHOP_KEY')

    const { name: session } = await sessions.create(people.anna, { project: 'shop' })
    expect(messageOf(await ask('root', 'PATCH', '/shop', { name: 'market' }))).toContain(`session ${session}`)
    await sessions.end(people.root, session)

    const definition = { transport: 'http', url: listener.url }
    await rest.ask('root', 'POST', '/servers', { name: 'till', scope: 'project:shop', definition })
    expect(messageOf(await ask('root', 'PATCH', '/shop', { name: 'market' }))).toContain('server till')
    await rest.ask('root', 'DELETE', '/servers/till?scope=project:shop')

    expect(messageOf(await ask('root', 'PATCH', '/globbed', { name: 'market' }))).toContain('glob*')
    expect(Object.keys((await saved()).projects).sort()).toEqual(['globbed', 'shop', 'store'])
    expect(await ask('root', 'PATCH', '/shop', { name: 'market' })).toMatchObject({ status: 200 })
  })

  it('does not take the name of another project', async () => {
    expect(await ask('root', 'PATCH', '/market', { name: 'store' })).toMatchObject({ status: 409 })
  })
})

it('a new project does not get the secrets of a project that was removed from the file by hand', async () => {
  await ask('root', 'POST', '', { name: 'gone' })
  await gateway.gateway.secrets.set(people.root, {
    scope: 'project:gone',
    name: 'OLD_KEY',
    value: 'a-long-secret-value',
  })
  const { projects, ...rest } = await saved()
  const { gone: _gone, ...others } = projects
  await gateway.writeText(JSON.stringify({ ...rest, projects: others }))
  await gateway.gateway.config.reload()
  const refused = await ask('root', 'POST', '', { name: 'gone' })
  expect([refused.status, messageOf(refused)]).toEqual([409, expect.stringContaining('secret OLD_KEY')])
  expect(await ask('root', 'PATCH', '/market', { name: 'gone' })).toMatchObject({ status: 409 })
  expect(await ask('root', 'DELETE', '/gone')).toMatchObject({ status: 200 })
  expect(await ask('root', 'POST', '', { name: 'gone' })).toMatchObject({ status: 201 })
  expect(gateway.gateway.secrets.list(people.root)).toEqual([])
})
