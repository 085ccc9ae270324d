import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type ConfigInput, startTestGateway } from '../../support/gateway.ts'
import { listen, privateHosts, startCanary } from '../servers/canary.ts'
import { serveRest, startListener } from './support.ts'

const environment = { GLOBAL_TOKEN: 'global-token-value' }
const asUrls = privateHosts.filter((host) => !host.includes(':') || host.startsWith('['))

describe('a server that was not written by an administrator', () => {
  it('reaches no private place when it is tried, in whatever form the address is written', async () => {
    await using canary = await startCanary()
    await using gateway = await startTestGateway({ projects: { shop: { owners: ['olga'] } } })
    await using rest = await serveRest(gateway)
    for (const host of asUrls) {
      const definition = { transport: 'http', url: `http://${host}:${canary.port}/mcp` }
      for (const [who, scope] of [
        ['anna', 'user:me'],
        ['olga', 'project:shop'],
      ] as const) {
        const { body } = await rest.ask(who, 'POST', '/servers/validate', { definition, scope })
        expect([host, who, Object(body.failure).code]).toEqual([host, who, 'egress-denied'])
      }
    }
    expect(canary.visits()).toBe(0)
  })

  it('reaches none when it is saved, and none from the file', async () => {
    await using canary = await startCanary()
    const definition = { transport: 'http' as const, url: `http://localhost:${canary.port}/mcp` }
    await using gateway = await startTestGateway({
      projects: { shop: { owners: ['olga'], servers: { ours: definition } } },
      users: { ben: { servers: { bens: definition, old: { ...definition, transport: 'sse' } } } },
    })
    await using rest = await serveRest(gateway)
    const added = await rest.ask('anna', 'POST', '/servers', { name: 'mine', scope: 'user:me', definition })
    expect(added).toMatchObject({ status: 201, body: { state: 'failed', error: { code: 'egress-denied' } } })
    for (const name of ['ours', 'bens', 'old', 'mine']) {
      expect(await gateway.reach(name, 'failed')).toMatchObject({ error: { code: 'egress-denied' } })
    }
    expect(canary.visits()).toBe(0)
  })

  it('reaches what `egress.allow` names, and is led nowhere else by a redirect', async () => {
    await using canary = await startCanary()
    await using listener = await startListener()
    const redirecting = createServer((_request, response) => {
      response.writeHead(307, { location: `http://127.0.0.1:${canary.port}/steal` }).end()
    })
    const { port } = await listen(redirecting, 0, '127.0.0.1')
    await using gateway = await startTestGateway({
      egress: { allow: ['127.0.0.1'] },
      users: {
        anna: {
          servers: {
            good: { transport: 'http', url: listener.url },
            astray: { transport: 'http', url: `http://127.0.0.1:${port}/mcp`, headers: { 'x-mine': 'mine' } },
          },
        },
      },
    })
    await gateway.reach('good', 'connected')
    await gateway.reach('astray', 'failed')
    expect(canary.visits()).toBe(0)
    redirecting.closeAllConnections()
    redirecting.close()
  })

  it('is one of a project that has owners: without owners it is the administrators’ own', async () => {
    await using listener = await startListener()
    const config = (owners: string[]): ConfigInput => ({
      environment: ['GLOBAL_TOKEN'],
      projects: {
        shop: {
          owners,
          servers: { stock: { transport: 'http', url: listener.url, headers: { t: '${GLOBAL_TOKEN}' } } },
        },
      },
    })
    await using gateway = await startTestGateway(config([]), { environment })
    await gateway.reach('stock', 'connected')
    expect(listener.heard()).toContain('global-token-value')
    await gateway.writeConfig(config(['olga']))
    const { error } = await gateway.reach('stock', 'failed')
    expect(error?.code).toBe('variable-missing')
  })
})

describe('the gateway’s variables', () => {
  it('are never sent to a server that a member or an owner wrote, in no field', async () => {
    await using listener = await startListener()
    await using gateway = await startTestGateway(
      { environment: ['GLOBAL_TOKEN'], egress: { allow: ['127.0.0.1'] }, projects: { shop: { owners: ['olga'] } } },
      { environment },
    )
    await using rest = await serveRest(gateway)
    const fields = [
      { headers: { a: 'Bearer ${GLOBAL_TOKEN}' } },
      { headers: { a: '${GLOBAL_TOKEN:-fallback-one}' } },
      { url: `${listener.url}/\${GLOBAL_TOKEN}` },
      { url: `${listener.url}?t=\${GLOBAL_TOKEN:-fallback-two}` },
    ]
    for (const [index, field] of fields.entries()) {
      const definition = { transport: 'http', url: listener.url, ...field }
      for (const [who, scope] of [
        ['anna', 'user:me'],
        ['olga', 'project:shop'],
      ] as const) {
        const { status } = await rest.ask(who, 'POST', '/servers', { name: `try${index}`, scope, definition })
        expect(status).toBe(201)
        expect(await rest.ask(who, 'POST', '/servers/validate', { definition, scope })).toMatchObject({ status: 200 })
      }
    }
    expect(listener.heard()).toContain('fallback-one')
    expect(listener.heard()).toContain('fallback-two')
    expect(listener.heard()).not.toContain('global-token-value')
  })

  it('are not even told apart by whether they are set', async () => {
    await using gateway = await startTestGateway({ environment: ['GLOBAL_TOKEN'] }, { environment })
    const wordsFor = async (name: string) => {
      const definition = { transport: 'http', url: 'https://mcp.example.com', headers: { a: `\${${name}}` } }
      await using rest = await serveRest(gateway)
      const { body } = await rest.ask('anna', 'POST', '/servers/validate', { definition })
      return String(Object(body.failure).message).replace(name, 'NAME')
    }
    expect(await wordsFor('GLOBAL_TOKEN')).toBe(await wordsFor('NEVER_HEARD_OF'))
  })

  it('go on being sent with an inherited header to the inherited address, and nowhere else', async () => {
    await using shared = await startListener()
    await using elsewhere = await startListener()
    const moved = { transport: 'http' as const, url: elsewhere.url }
    await using gateway = await startTestGateway(
      {
        environment: ['GLOBAL_TOKEN'],
        egress: { allow: ['127.0.0.1'] },
        servers: {
          shared: {
            transport: 'http',
            url: shared.url,
            headers: { authorization: 'Bearer ${GLOBAL_TOKEN}', 'x-literal': 'literal-value' },
          },
        },
        users: {
          anna: { servers: { shared: { headers: { 'x-copy': '${GLOBAL_TOKEN:-nothing}' } } } },
          ben: { servers: { shared: moved } },
          olga: { servers: { shared: { transport: 'http', url: shared.url, headers: { host: 'olga.example' } } } },
        },
        agents: { mover: { servers: { shared: moved } } },
      },
      { environment },
    )
    const ids = ['shared', 'shared@user:anna', 'shared@user:ben', 'shared@user:olga', 'shared@agent:mover']
    await expect
      .poll(() =>
        gateway.gateway.servers
          .list()
          .filter(({ state }) => state === 'connected')
          .map(({ id }) => id)
          .sort(),
      )
      .toEqual([...ids].sort())
    expect(elsewhere.requests()).toBeGreaterThan(0)
    for (const kept of ['global-token-value', 'literal-value']) expect(elsewhere.heard()).not.toContain(kept)
    const requests = shared.heard().split('\n\n')
    const copies = requests.filter((request) => request.includes('x-copy'))
    expect(copies.every((request) => request.includes('x-copy\nnothing'))).toBe(true)
    expect(copies.every((request) => request.includes('authorization\nBearer global-token-value'))).toBe(true)
    const hosted = requests.filter((request) => request.includes('olga.example'))
    expect(hosted.length).toBeGreaterThan(0)
    expect(hosted.some((request) => request.includes('global-token-value'))).toBe(false)
  })
})

it('leaves administrators’ own servers where they are, private or not', async () => {
  await using listener = await startListener()
  const own = { transport: 'http' as const, url: listener.url }
  await using gateway = await startTestGateway({
    servers: { global: own },
    agents: { helper: { servers: { helpers: own } } },
  })
  await gateway.reach('global', 'connected')
  await gateway.reach('helpers', 'connected')
  await using rest = await serveRest(gateway)
  const trial = await rest.ask('tokenFile', 'POST', '/servers/validate', { definition: own })
  expect(trial.body).toMatchObject({ ok: true, tools: [{ risk: 'read' }] })
})
