import { request } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { initialize, modernRequest, type Reply, send } from '../scenarios/mcp/raw.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import {
  addPerson,
  cookieOf,
  firstAdministrator,
  password,
  sendJson,
  signIn,
  type TestPerson,
} from '../support/people.ts'

let gateway: TestGateway
let ada: TestPerson

beforeAll(async () => {
  gateway = await startTestGateway({})
  ada = await firstAdministrator(gateway)
  return () => gateway.close()
})

const port = () => new URL(gateway.url).port
const codeOf = (reply: Reply) => reply.error.code

describe('signing in over REST', () => {
  it('answers with a cookie that no page can read and no other site sends', async () => {
    const reply = await sendJson(gateway, 'POST', '/api/sign-in', { name: 'ada', password })
    expect(reply.status).toBe(200)
    expect(reply.message).toEqual({ name: 'ada', role: 'administrator', expiresAt: expect.any(String) })
    expect(reply.headers['set-cookie']).toHaveLength(1)
    const [name, ...attributes] = String(reply.headers['set-cookie']).split('; ')
    expect(name).toMatch(/^sallyport-[0-9a-f]{12}=[0-9a-z]{10}\.[A-Za-z0-9_-]{43}$/)
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=604800', 'Path=/', 'SameSite=Strict'])
    expect(reply.headers['cache-control']).toBe('no-store')
    expect(reply.text).not.toContain(String(cookieOf(reply)).split('=')[1])
  })

  it('makes a person of whoever has the cookie, until signing out', async () => {
    const person = await signIn(gateway, 'ada')
    expect((await person.request('GET', '/api/me')).message).toEqual({
      id: expect.stringMatching(/^user_/),
      kind: 'user',
      name: 'ada',
      role: 'administrator',
      person: true,
    })
    const left = await person.request('POST', '/api/sign-out')
    expect(left.status).toBe(200)
    expect(left.headers['set-cookie']?.[0]).toMatch(/^sallyport-[0-9a-f]{12}=; Max-Age=0; /)
    const refused = await person.request('GET', '/api/me')
    expect(refused.status).toBe(401)
    expect(codeOf(refused)).toBe('sign-in-needed')
  })

  it.each([
    ['a wrong password', { name: 'ada', password: 'wrong wrong wrong' }, 401, 'sign-in-failed'],
    ['a name that nobody has', { name: 'nobody', password }, 401, 'sign-in-failed'],
    ['no password', { name: 'ada' }, 400, 'request-invalid'],
    ['more than was asked for', { name: 'ada', password, role: 'administrator' }, 400, 'request-invalid'],
  ])('with %s sets no cookie', async (_, body, status, code) => {
    const reply = await sendJson(gateway, 'POST', '/api/sign-in', body)
    expect([reply.status, codeOf(reply)]).toEqual([status, code])
    expect(reply.headers['set-cookie']).toBeUndefined()
    expect(reply.text).not.toContain(password)
  })

  it('is slowed down, with the time to wait', async () => {
    const now = Date.now()
    await using still = await startTestGateway({}, { clock: { ...systemClock, now: () => now } })
    const replies: Reply[] = []
    for (let count = 0; count < 6; count++)
      replies.push(await sendJson(still, 'POST', '/api/sign-in', { name: 'guessed', password: 'wrong wrong wrong' }))
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 429])
    expect(replies.at(-1)?.headers['retry-after']).toBe('1')
  })

  it('is for JSON of our own pages or of programs', async () => {
    const body = JSON.stringify({ name: 'ada', password })
    const knock = (headers: Record<string, string>) =>
      send(gateway.url, { path: '/api/sign-in', headers: { 'content-type': 'application/json', ...headers }, body })
    expect((await knock({ origin: gateway.url, 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    const refused: Record<string, string>[] = [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
    ]
    for (const headers of refused) {
      const reply = await knock(headers)
      expect([headers, reply.status]).toEqual([headers, 403])
      expect(reply.headers['set-cookie']).toBeUndefined()
    }
  })

  it('has no other method, and its name in other letters is nothing', async () => {
    for (const [method, path] of [
      ['GET', '/api/sign-in'],
      ['PUT', '/api/sign-in'],
      ['POST', '/api/sign-in/'],
      ['POST', '/api/Sign-In'],
      ['POST', '/api/%73ign-in'],
      ['POST', '//api/sign-in'],
      ['POST', '/api/../api/sign-in'],
    ] as const) {
      const reply = await sendJson(gateway, method, path, method === 'GET' ? undefined : { name: 'ada', password })
      expect([method, path, reply.status]).toEqual([method, path, 401])
    }
  })

  it('behind HTTPS gets a cookie that only this host can set, and that goes over HTTPS only', async () => {
    await using there = await startTestGateway({ listen: { port: 0, publicUrl: 'https://gate.example.com' } })
    const { setup } = there.gateway.identity
    await setup.finish({ code: setup.code() ?? '', name: 'ada', password })
    const host = 'gate.example.com'
    const reply = await sendJson(there, 'POST', '/api/sign-in', { name: 'ada', password }, { host })
    const set = String(reply.headers['set-cookie'])
    expect(set).toMatch(/^__Host-sallyport-[0-9a-f]{12}=/)
    expect(set.split('; ').sort().slice(0, -1)).toEqual([
      'HttpOnly',
      'Max-Age=604800',
      'Path=/',
      'SameSite=Strict',
      'Secure',
    ])
    const cookie = String(cookieOf(reply))
    const leave = (origin: string) => sendJson(there, 'POST', '/api/sign-out', {}, { host, cookie, origin })
    expect((await leave('http://gate.example.com')).status).toBe(403)
    expect((await leave('https://gate.example.com')).status).toBe(200)
  })
})

describe('a change by cookie', () => {
  const change = (headers: Record<string, string>, method = 'POST', path = '/api/agents', body?: string) =>
    send(gateway.url, {
      method,
      path,
      headers: { cookie: ada.cookie, ...headers },
      ...(body !== undefined && { body }),
    })
  const wanted = () => JSON.stringify({ name: `agent-${Math.random().toString(36).slice(2)}` })
  const json = { 'content-type': 'application/json' }

  it('comes from a page of this gateway, or from a program', async () => {
    for (const headers of [
      { ...json, origin: gateway.url, 'sec-fetch-site': 'same-origin' },
      { ...json, origin: gateway.url },
      { ...json, 'sec-fetch-site': 'same-origin' },
      { ...json },
    ]) {
      expect([headers, (await change(headers, 'POST', '/api/agents', wanted())).status]).toEqual([headers, 201])
    }
  })

  const foreign: Record<string, () => Record<string, string>> = {
    'a page of another site': () => ({ ...json, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }),
    'a page that hides where it is from': () => ({ ...json, origin: 'null' }),
    'a page of another port of this machine': () => ({ ...json, origin: 'http://127.0.0.1:1' }),
    'a page of another name of this machine': () => ({ ...json, origin: `http://localhost:${port()}` }),
    'a page of our own name without encryption turned on': () => ({ ...json, origin: `https://127.0.0.1:${port()}` }),
    'a neighbouring site': () => ({ ...json, 'sec-fetch-site': 'same-site' }),
    'another site, by one header alone': () => ({ ...json, 'sec-fetch-site': 'cross-site' }),
    'a form of an old browser': () => ({ 'content-type': 'application/x-www-form-urlencoded' }),
    'a form that sends plain text': () => ({ 'content-type': 'text/plain' }),
    'a request without a type': () => ({}),
  }
  it.each(Object.keys(foreign))('is refused when it comes from %s', async (name) => {
    const before = gateway.gateway.agents.list({ kind: 'user', name: 'x', role: 'administrator' }).length
    const reply = await change(foreign[name]?.() ?? {}, 'POST', '/api/agents', wanted())
    expect([reply.status, codeOf(reply)]).toEqual([403, 'origin-not-allowed'])
    const after = gateway.gateway.agents.list({ kind: 'user', name: 'x', role: 'administrator' }).length
    expect(after).toBe(before)
  })

  it('is never made by GET', async () => {
    const entries = async () => (await gateway.gateway.audit.list({ limit: 1000, kind: 'change' })).items.length
    const before = await entries()
    for (const path of ['/api/agents?name=x', '/api/sign-out', '/api/users/ada/password', '/api/tokens?agent=x'])
      await change({}, 'GET', path)
    expect(await entries()).toBe(before)
  })
})

describe('a request with both a token and a cookie', () => {
  const me = (headers: Record<string, string>, path = '/api/me') => send(gateway.url, { method: 'GET', path, headers })

  it('is judged by the token alone', async () => {
    const authorization = `Bearer ${await gateway.token('reviewer')}`
    expect((await me({ authorization, cookie: ada.cookie })).message).toMatchObject({ kind: 'agent', name: 'reviewer' })
    expect((await me({ authorization, cookie: ada.cookie }, '/api/users')).status).toBe(403)
  })

  it.each(['Bearer x', `Bearer sp_${'a'.repeat(10)}_${'A'.repeat(43)}`, '', 'Bearer', 'Basic YTpi'])(
    'does not fall back to the cookie when the token is wrong: %j',
    async (authorization) => {
      const reply = await me({ authorization, cookie: ada.cookie })
      expect(reply.status).toBe(401)
      expect(codeOf(reply)).toMatch(/^token-/)
    },
  )
})

describe('a cookie', () => {
  it('is not enough at MCP addresses', async () => {
    for (const path of ['/mcp', '/mcp/t/all', '/mcp/s/x']) {
      for (const method of ['GET', 'DELETE', 'POST']) {
        const body = JSON.stringify(initialize())
        const reply = await send(gateway.url, {
          method,
          path,
          headers: { cookie: ada.cookie, origin: gateway.url, 'content-type': 'application/json' },
          ...(method === 'POST' && { body }),
        })
        expect([path, method, reply.status, codeOf(reply)]).toEqual([path, method, 401, 'token-missing'])
      }
    }
    const { headers, body } = await modernRequest(gateway, 'tools/list', {}, { headers: { authorization: undefined } })
    expect((await send(gateway.mcpUrl, { headers: { ...headers, cookie: ada.cookie }, body })).status).toBe(401)
  })

  it('is not taken twice, nor under the name of another gateway', async () => {
    const [name, value] = ada.cookie.split('=')
    for (const cookie of [
      `${name}=${value}; ${name}=${value}`,
      `${name}=x; ${name}=${value}`,
      `sallyport-1=${value}`,
      `__Host-sallyport=${value}`,
      `x${name}=${value}`,
      `${name}="${value}"`,
    ]) {
      const reply = await send(gateway.url, { method: 'GET', path: '/api/me', headers: { cookie } })
      expect([cookie, reply.status]).toEqual([cookie, 401])
    }
    const among = `theme=dark; ${ada.cookie}; other=1`
    expect((await send(gateway.url, { method: 'GET', path: '/api/me', headers: { cookie: among } })).status).toBe(200)
  })

  it('is not taken twice in two headers either', async () => {
    const status = await new Promise<number>((resolve, reject) => {
      const { hostname, port: at } = new URL(gateway.url)
      const headers = ['host', `${hostname}:${at}`, 'cookie', ada.cookie, 'cookie', ada.cookie]
      const asking = request({ hostname, port: at, path: '/api/me', headers, agent: false })
      asking.on('response', (response) => resolve(response.resume().statusCode ?? 0)).on('error', reject)
      asking.end()
    })
    expect(status).toBe(401)
  })

  it('stops working at once when its user is disabled, in every browser', async () => {
    const bob = await addPerson(gateway, ada, 'bob', 'member')
    const elsewhere = await signIn(gateway, 'bob')
    expect((await ada.request('PATCH', '/api/users/bob', { disabled: true })).status).toBe(200)
    for (const person of [bob, elsewhere]) expect((await person.request('GET', '/api/me')).status).toBe(401)
  })
})

describe('a member', () => {
  it('sees the calls of what it owns, and of nobody else', async () => {
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const lea = await addPerson(gateway, ada, 'lea', 'member')
    const { token } = (await kim.request('POST', '/api/tokens', { agent: 'kims' })).message
    const session = (await kim.request('POST', '/api/sessions', {})).message
    const call = { arguments: {} }
    for (const bearer of [token, session.token])
      await sendJson(gateway, 'POST', '/api/tools/none/call', call, { authorization: `Bearer ${bearer}` })
    await kim.request('POST', '/api/tools/none/call', call)
    const list = async (person: TestPerson, query = '') =>
      (await person.request('GET', `/api/calls${query}`)).message.items as { id: string; principal: string }[]
    const seen = await list(kim)
    expect(seen.map(({ principal }) => principal).sort()).toEqual(['agent:kims', `session:${session.name}`, 'user:kim'])
    expect(await list(kim, '?principal=agent:kims')).toHaveLength(1)
    expect(await list(lea)).toEqual([])
    expect(await list(lea, '?principal=agent:kims')).toEqual([])
    for (const { id } of seen) {
      expect((await kim.request('GET', `/api/calls/${id}`)).status).toBe(200)
      expect((await lea.request('GET', `/api/calls/${id}`)).status).toBe(404)
      expect((await ada.request('GET', `/api/calls/${id}`)).status).toBe(200)
    }
  })
})
