import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { Listen } from '../../src/contract/config.ts'
import type { Principal } from '../../src/contract/principal.ts'
import { createApi } from '../../src/http/api.ts'
import { createSignInCookie } from '../../src/http/cookie.ts'
import { unboundedDelivery } from '../support/delivery.ts'
import { startTestGateway } from '../support/gateway.ts'

const callers: Record<string, Principal> = {
  administrator: { kind: 'user', name: 'root', role: 'administrator', person: true },
  'token file': { kind: 'user', name: 'admin-token', role: 'administrator' },
  auditor: { kind: 'user', name: 'eve', role: 'auditor', person: true },
  owner: { kind: 'user', name: 'kim', role: 'member', person: true },
  member: { kind: 'user', name: 'bo', role: 'member', person: true },
  agent: { kind: 'agent', name: 'shopper', owner: 'kim' },
  stranger: { kind: 'agent', name: 'other' },
}

const requests: Record<string, [method: string, path: string, body?: object]> = {
  'list own': ['GET', '/rules'],
  "list an agent's": ['GET', '/rules?agent=shopper'],
  'test own': ['POST', '/rules/test', { tool: 'x' }],
  "test an agent's": ['POST', '/rules/test', { tool: 'x', agent: 'shopper' }],
  "replay an agent's": ['POST', '/rules/replay', { agent: 'shopper' }],
  'set the project': ['PUT', '/rules?scope=project:shop', { rules: [] }],
  'set the agent': ['PUT', '/rules?scope=agent:shopper', { rules: [] }],
  'set everything': ['PUT', '/rules', { rules: [] }],
}

it('answers each caller what is theirs to ask and to set', async () => {
  await using test = await startTestGateway({ projects: { shop: { owners: ['kim'] } } })
  const { gateway } = test
  // The agent is Kim's; who owns whom comes from the identities, which this test does without.
  const describePrincipal: typeof gateway.config.describePrincipal = (key) => ({
    ...gateway.config.describePrincipal(key),
    ...(key === 'agent:shopper' && { owner: 'kim' }),
  })
  const cookie = createSignInCookie(Listen.parse({}), 'test')
  const api = createApi({
    gateway: { ...gateway, config: { ...gateway.config, describePrincipal } },
    url: () => test.url,
    cookie,
  })
  const server = createServer((request, response) => {
    const caller = callers[String(request.headers['x-caller'])] ?? { kind: 'agent', name: 'nobody' }
    void api.handle(request, response, { principal: caller, delivery: unboundedDelivery(response) })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const table: Record<string, string> = {}
  for (const caller of Object.keys(callers)) {
    const statuses: number[] = []
    for (const [method, path, body] of Object.values(requests)) {
      const response = await fetch(`http://127.0.0.1:${port}/api${path}`, {
        method,
        headers: { 'x-caller': caller, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      await response.arrayBuffer()
      statuses.push(response.status)
    }
    table[caller] = statuses.join(' ')
  }
  server.close()
  expect(table).toEqual({
    administrator: '200 200 200 200 200 200 200 200',
    'token file': '200 200 200 200 200 200 200 200',
    auditor: '200 200 200 200 200 403 403 403',
    owner: '200 200 200 200 200 200 403 403',
    member: '200 403 200 403 403 403 403 403',
    agent: '200 200 200 200 200 403 403 403',
    stranger: '200 403 200 403 403 403 403 403',
  })
})
