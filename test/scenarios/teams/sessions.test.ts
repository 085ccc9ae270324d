import { describe, expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { addPerson, firstAdministrator, sendJson } from '../../support/people.ts'

async function toolsOf(gateway: TestGateway, token: unknown): Promise<string[]> {
  const reply = await sendJson(gateway, 'GET', '/api/tools', undefined, { authorization: `Bearer ${token}` })
  const { items } = reply.message
  return Array.isArray(items) ? items.map(({ name }) => String(name)) : []
}

describe('a session', () => {
  it('uses its own choice of servers, from the moment at which it is stated', async () => {
    await using gateway = await startTestGateway({
      servers: { rec: stdioFixture('recording'), more: stdioFixture('recording') },
    })
    await gateway.reach('rec', 'connected')
    await gateway.reach('more', 'connected')
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const made = await kim.request('POST', '/api/sessions', { servers: { rec: { enabled: false } } })
    expect(made.status).toBe(201)
    const { name, token } = made.message
    const servers = async () => [...new Set((await toolsOf(gateway, token)).map((tool) => tool.split('_')[0]))].sort()
    expect(await servers()).toEqual(['more'])
    await kim.request('PATCH', `/api/sessions/${name}`, { servers: { more: { enabled: false } } })
    expect(await servers()).toEqual(['rec'])
    await kim.request('PATCH', `/api/sessions/${name}`, { servers: {} })
    expect(await servers()).toEqual(['more', 'rec'])
    const refused = await sendJson(
      gateway,
      'POST',
      '/api/tools/rec_nothing/call',
      {},
      { authorization: `Bearer ${token}` },
    )
    expect(refused.status).toBe(404)
  })

  it('inherits its project, and runs no command that a member states', async () => {
    await using gateway = await startTestGateway({
      projects: { shop: { owners: ['kim'], servers: { rec: stdioFixture('recording') } } },
    })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const lea = await addPerson(gateway, ada, 'lea', 'member')
    expect((await lea.request('POST', '/api/sessions', { project: 'shop' })).status).toBe(403)
    const { token } = (await kim.request('POST', '/api/sessions', { project: 'shop' })).message
    const { token: outside } = (await kim.request('POST', '/api/sessions', {})).message
    await poll(async () => ((await toolsOf(gateway, token)).length > 0 ? true : undefined))
    expect(await toolsOf(gateway, outside)).toEqual([])
    const stated = { servers: { mine: { transport: 'stdio', command: 'sh', args: ['-c', 'true'] } } }
    const refused = await kim.request('POST', '/api/sessions', stated)
    expect([refused.status, refused.error.code]).toEqual([403, 'forbidden'])
    expect(gateway.gateway.servers.list().map(({ name }) => name)).toEqual(['rec'])
  })
})
