import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { databases, placeOn } from '../../storage/support.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { addPerson, firstAdministrator, sendJson, signIn, type TestPerson } from '../../support/people.ts'
import { startListener } from './support.ts'

const hidden = 'the-token-of-the-first-kim'
const ask = { name: 'change', inputSchema: { type: 'object' } }
const read = { name: 'peek', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }

/** Kim with everything that a member can have. */
async function equip(gateway: TestGateway, kim: TestPerson, url: string) {
  const expect2xx = async (sent: ReturnType<TestPerson['request']>) => {
    const reply = await sent
    if (reply.status >= 300) throw new Error(reply.text)
    return reply.message
  }
  await expect2xx(kim.request('PUT', '/api/secrets/KEY?scope=user:kim', { value: hidden }))
  const server = { name: 'own', scope: 'user:kim', transport: 'http', url, headers: { Authorization: '${KEY}' } }
  await expect2xx(kim.request('POST', '/api/servers', server))
  const agent = await expect2xx(kim.request('POST', '/api/tokens', { agent: 'kims-bot' }))
  const session = await expect2xx(kim.request('POST', '/api/sessions', { agent: 'kims-bot' }))
  const headers = { authorization: `Bearer ${agent.token}` }
  const call = (tool: string, more = {}) =>
    sendJson(gateway, 'POST', `/api/tools/${tool}/call`, { arguments: {} }, { ...headers, ...more })
  await poll(async () => ((await call('own_peek')).status === 202 ? true : undefined))
  const waiting = (await call('own_change')).message
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const grant = { tools: 'own_change', principal: 'agent:kims-bot', budget: 5, expiresAt }
  await expect2xx(kim.request('POST', '/api/grants', grant))
  return { agent: String(agent.token), session: String(session.token), waiting }
}

function itemsOf(message: unknown): string[] {
  if (typeof message === 'object' && message !== null && !('items' in message)) throw new Error(JSON.stringify(message))
  const { items } = message as { items: { noun: string; name: string; effect?: string }[] }
  return items.map(({ noun, name, effect }) => [noun, name, effect].filter(Boolean).join(' | '))
}

describe.each(databases)('a removed user (%s)', (kind) => {
  it('is gone with everything that belonged to them, and a new one of the same name starts with nothing', async () => {
    await using listener = await startListener(() => [read, ask])
    const { databaseUrl } = await placeOn(kind)
    await using gateway = await startTestGateway(
      {
        egress: { allow: ['127.0.0.1'] },
        members: { trustOwn: false },
        projects: { shop: { owners: ['kim'] }, site: { owners: ['kim', 'lea'] } },
      },
      { databaseUrl },
    )
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const had = await equip(gateway, kim, listener.url)

    const plan = await ada.request('GET', '/api/users/kim/removal')
    expect(itemsOf(plan.message)).toEqual([
      'agent | kims-bot',
      expect.stringMatching(/^token \| sp_.*… \| is revoked$/),
      expect.stringMatching(/^session \| kims-bot-.* \| ends$/),
      'secret | KEY of user:kim',
      'approval | Peek | is withdrawn',
      'approval | Change | is withdrawn',
      expect.stringMatching(/^grant \| grant_.* for own_change \| is revoked$/),
      'server | own of user:kim',
      'configuration | users.kim',
      'project | shop | gets the owner ada instead of kim',
      'project | site | loses the owner kim',
    ])
    const removed = await ada.request('DELETE', '/api/users/kim')
    expect([removed.status, itemsOf(removed.message)]).toEqual([200, itemsOf(plan.message)])

    expect((await kim.request('GET', '/api/me')).status).toBe(401)
    for (const token of [had.agent, had.session]) {
      const reply = await sendJson(gateway, 'GET', '/api/tools', undefined, { authorization: `Bearer ${token}` })
      expect(reply.status).toBe(401)
    }
    const { items: secrets } = (await ada.request('GET', '/api/secrets')).message
    expect(secrets).toEqual([])
    const { items: grants } = (await ada.request('GET', '/api/grants')).message
    expect(grants).toMatchObject([{ revokedBy: 'removal' }])
    const { approval, call } = had.waiting as { approval: { id: string }; call: { id: string } }
    const { state, withdrawnBecause } = (await ada.request('GET', `/api/approvals/${approval.id}`)).message
    expect([state, withdrawnBecause]).toEqual(['withdrawn', 'The user kim was removed'])
    if (kind === 'SQLite') expect(await readFile(gateway.configFile, 'utf8')).not.toContain('kim')
    const { items: projects } = (await ada.request('GET', '/api/projects')).message
    expect(projects).toMatchObject([
      { name: 'shop', owners: ['ada'] },
      { name: 'site', owners: ['lea'] },
    ])

    const next = await addPerson(gateway, ada, 'kim', 'member')
    const seen = async (path: string) => (await next.request('GET', path)).message.items
    for (const path of ['servers', 'secrets', 'agents', 'sessions', 'tokens', 'grants', 'approvals', 'calls'])
      expect([path, await seen(`/api/${path}`)]).toEqual([path, []])
    expect((await next.request('GET', `/api/calls/${call.id}`)).status).toBe(404)
    expect((await next.request('GET', `/api/approvals/${approval.id}`)).status).toBe(404)
    // The same names once more: nothing of the first ones counts for them.
    const again = await equip(gateway, next, listener.url)
    expect(again.waiting).not.toEqual(had.waiting)
    expect(await seen('/api/calls')).not.toEqual([])
    const reply = await sendJson(gateway, 'GET', '/api/tools', undefined, { authorization: `Bearer ${had.agent}` })
    expect(reply.status).toBe(401)
  })

  it('is recorded as one change with an intent that lists what goes', async () => {
    const { databaseUrl } = await placeOn(kind)
    await using gateway = await startTestGateway({}, { databaseUrl })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    await kim.request('POST', '/api/agents', { name: 'kims-bot' })
    await ada.request('DELETE', '/api/users/kim')
    const { items } = (await ada.request('GET', '/api/audit?kind=change&limit=2')).message
    expect(items).toMatchObject([
      { principal: 'user:ada', subject: 'user:kim', body: { action: 'user-removed', items: 1 } },
      {
        principal: 'user:ada',
        subject: 'user:kim',
        body: { action: 'user-removing', items: [{ noun: 'agent', name: 'kims-bot' }] },
      },
    ])
  })

  it('loses access at once and the removal can be repeated when the configuration cannot be changed', async () => {
    const { databaseUrl } = await placeOn(kind)
    if (databaseUrl !== undefined) return // there the text in force lives in the database, where nobody breaks it
    await using gateway = await startTestGateway({ users: { kim: { rules: [{ tools: '*', action: 'ask' }] } } })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const whole = await readFile(gateway.configFile, 'utf8')
    await gateway.writeText('{ "users": ')
    const refused = await ada.request('DELETE', '/api/users/kim')
    expect([refused.status, refused.error.code]).toEqual([400, 'config-invalid'])
    expect(refused.text).toContain('The user kim is disabled, but its data was not removed')
    expect((await kim.request('GET', '/api/me')).status).toBe(401)
    await gateway.writeText(whole)
    expect((await ada.request('DELETE', '/api/users/kim')).status).toBe(200)
    expect((await ada.request('GET', '/api/users')).message.items).toMatchObject([{ name: 'ada' }])
  })
})

describe('a removed agent', () => {
  it('leaves the settings that administrators wrote for it, if its owner removes it', async () => {
    const rules = [{ tools: '*', action: 'deny' as const }]
    await using gateway = await startTestGateway({ agents: { bot: { rules } } })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    await ada.request('POST', '/api/agents', { name: 'bot', owner: 'kim' })
    const removed = await kim.request('DELETE', '/api/agents/bot')
    expect(itemsOf(removed.message)).toEqual([
      'configuration | agents.bot | stays; only administrators can reuse the name',
    ])
    expect((await kim.request('POST', '/api/agents', { name: 'bot' })).error.code).toBe('name-taken')
    expect((await ada.request('POST', '/api/agents', { name: 'bot' })).status).toBe(201)
    expect((await ada.request('DELETE', '/api/agents/bot')).status).toBe(200)
    expect(gateway.gateway.config.current().agents).toEqual({})
  })

  it('gives its name free without its results, its keys and its calls', async () => {
    await using listener = await startListener(() => [{ ...ask, annotations: { readOnlyHint: true } }])
    await using gateway = await startTestGateway({ servers: { shop: { transport: 'http', url: listener.url } } })
    const ada = await firstAdministrator(gateway)
    const start = async () => {
      const { token } = (await ada.request('POST', '/api/tokens', { agent: 'bot' })).message
      const headers = { authorization: `Bearer ${token}` }
      return {
        call: () =>
          sendJson(
            gateway,
            'POST',
            '/api/tools/shop_change/call',
            { arguments: {} },
            { ...headers, 'idempotency-key': 'k' },
          ),
        calls: async () => (await sendJson(gateway, 'GET', '/api/calls', undefined, headers)).message.items,
      }
    }
    const first = await start()
    await first.call()
    await first.call()
    expect(listener.calls()).toBe(1)
    await ada.request('DELETE', '/api/agents/bot')
    const second = await start()
    expect(await second.calls()).toEqual([])
    await second.call()
    expect(listener.calls()).toBe(2)
  })
})

describe('a removed project', () => {
  it('takes its sessions, secrets, grants and settings along, and agents leave it', async () => {
    await using gateway = await startTestGateway({
      projects: { shop: { owners: ['kim'], rules: [{ tools: '*', action: 'ask' }] } },
      agents: { bot: { project: 'shop' } },
    })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    await kim.request('PUT', '/api/secrets/KEY?scope=project:shop', { value: hidden })
    const { token } = (await kim.request('POST', '/api/sessions', { project: 'shop', name: 'work' })).message
    expect((await kim.request('DELETE', '/api/projects/shop')).status).toBe(403)
    const removed = await ada.request('DELETE', '/api/projects/shop')
    expect(itemsOf(removed.message)).toEqual([
      'session | work | ends',
      'secret | KEY of project:shop',
      'agent | bot | leaves the project shop',
      'rules | 1 of project:shop',
      'configuration | projects.shop',
    ])
    const reply = await sendJson(gateway, 'GET', '/api/tools', undefined, { authorization: `Bearer ${token}` })
    expect(reply.status).toBe(401)
    expect((await ada.request('GET', '/api/projects')).message.items).toEqual([])
    expect((await ada.request('GET', '/api/secrets')).message.items).toEqual([])
    expect((await signIn(gateway, 'kim')).name).toBe('kim')
  })
})
