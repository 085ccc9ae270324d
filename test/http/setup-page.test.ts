import { describe, expect, it } from 'vitest'
import { type Reply, send } from '../scenarios/mcp/raw.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { password } from '../support/people.ts'

const formType = 'application/x-www-form-urlencoded'

function post(
  gateway: TestGateway,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const body = new URLSearchParams(fields).toString()
  const own = { 'content-type': formType, origin: gateway.url, 'sec-fetch-site': 'same-origin' }
  return send(gateway.url, { path: '/setup', headers: { ...own, ...headers }, body })
}

const get = (gateway: TestGateway, path: string) => send(gateway.url, { method: 'GET', path })
const names = (gateway: TestGateway) => gateway.gateway.users.list().map(({ name }) => name)

describe('the page of the one-time link', () => {
  it('shows a form and changes nothing, and its form makes the administrator once', async () => {
    await using gateway = await startTestGateway({})
    const code = gateway.gateway.identity.setup.code() ?? ''
    for (let count = 0; count < 3; count++) {
      const page = await get(gateway, `/setup?code=${code}`)
      expect(page.status).toBe(200)
      expect(page.text).toContain('<form method="post" action="/setup">')
      expect(page.text).toContain(code)
    }
    expect(names(gateway)).toEqual([])
    const made = await post(gateway, { code, name: 'ada', password })
    expect(made.status).toBe(200)
    expect(names(gateway)).toEqual(['ada'])
    expect(made.text).not.toContain(password)
    expect(made.text).toContain('<a class="button" href="/">Open the dashboard</a>')
    const [cookie = ''] = [made.headers['set-cookie']].flat()
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict/)
    const headers = { cookie: cookie.split(';')[0] ?? '', 'sec-fetch-site': 'same-origin' }
    const me = await send(gateway.url, { method: 'GET', path: '/api/me', headers })
    expect(JSON.parse(me.text)).toMatchObject({ name: 'ada', role: 'administrator', person: true })
    expect((await post(gateway, { code, name: 'eve', password })).status).toBe(403)
    expect((await get(gateway, `/setup?code=${code}`)).status).toBe(403)
    expect(names(gateway)).toEqual(['ada'])
  })

  it('is needed until there is an administrator, which the sign-in page can ask', async () => {
    await using gateway = await startTestGateway({})
    expect((await get(gateway, '/setup/state')).text).toBe('{"needed":true}')
    await gateway.gateway.identity.setup.finish({
      code: gateway.gateway.identity.setup.code() ?? '',
      name: 'ada',
      password,
    })
    expect((await get(gateway, '/setup/state')).text).toBe('{"needed":false}')
  })

  it('says what is wrong with a name or password, keeps the link, and never shows the password again', async () => {
    await using gateway = await startTestGateway({})
    const code = gateway.gateway.identity.setup.code() ?? ''
    const short = await post(gateway, { code, name: '"><script>alert(1)</script>', password: 'longenoughforthis' })
    expect(short.status).toBe(400)
    expect(short.text).toContain('role="alert"')
    expect(short.text).not.toContain('<script')
    const weak = await post(gateway, { code, name: 'ada', password: 'swordfish' })
    expect(weak.status).toBe(400)
    expect(weak.text).toContain('12 characters')
    expect(weak.text).toContain('value="ada"')
    expect(weak.text).not.toContain('swordfish')
    expect((await post(gateway, { code, name: 'ada', password })).status).toBe(200)
  })

  it('runs no program, is in no frame, and lets its form go nowhere else', async () => {
    await using gateway = await startTestGateway({})
    const page = await get(gateway, `/setup?code=${gateway.gateway.identity.setup.code()}`)
    const policy = String(page.headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("form-action 'self'")
    expect(policy).not.toContain('unsafe')
    expect(page.headers).toMatchObject({
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    })
    expect(page.text).not.toContain('<script')
  })

  it('takes nothing without the code, from another site, or in another form', async () => {
    await using gateway = await startTestGateway({})
    const code = gateway.gateway.identity.setup.code() ?? ''
    const fields = { code, name: 'eve', password }
    const refused: [string, Promise<Reply>, number][] = [
      ['no code', post(gateway, { name: 'eve', password }), 403],
      ['a wrong code', post(gateway, { ...fields, code: `${code}x` }), 403],
      ['another site', post(gateway, fields, { origin: 'https://evil.example' }), 403],
      ['another site without an origin', post(gateway, fields, { 'sec-fetch-site': 'cross-site' }), 403],
      ['JSON', post(gateway, fields, { 'content-type': 'application/json' }), 400],
      ['too much', post(gateway, { ...fields, more: 'x'.repeat(20_000) }), 413],
    ]
    for (const [what, reply, status] of refused) expect([what, (await reply).status]).toEqual([what, status])
    for (const path of ['/setup', '/setup?code=', '/setup?code=x', `/setup?code=${code}x`])
      expect([path, (await get(gateway, path)).status]).toEqual([path, 403])
    for (const path of ['/setup/', '/SETUP', '//setup', '/setup/x', '/%73etup'])
      expect([path, (await get(gateway, `${path}?code=${code}`)).status]).toEqual([path, 401])
    expect(names(gateway)).toEqual([])
  })
})
