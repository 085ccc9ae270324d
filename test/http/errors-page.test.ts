import { hash } from 'node:crypto'
import { expect, it } from 'vitest'
import { errorTable } from '../../src/contract/errors.ts'
import { startTestGateway } from '../support/gateway.ts'

it('leads from a REST error to its section on a page that needs no token', async () => {
  await using gateway = await startTestGateway({})
  const refused = await fetch(`${gateway.url}/api/servers`)
  expect(await refused.json()).toMatchObject({ error: { code: 'token-missing', docs: '/docs/errors#token-missing' } })
  const unknown = await gateway.fetch('tester', '/api/calls/call_nothing')
  expect(await unknown.json()).toMatchObject({ error: { code: 'call-not-found', docs: '/docs/errors#call-not-found' } })

  const page = await fetch(`${gateway.url}/docs/errors`)
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const text = await page.text()
  for (const code of Object.keys(errorTable)) expect(text.split(`id="${code}"`), code).toHaveLength(2)
  expect(text).toContain('Run <code>sallyport calls list</code> to see the calls with their ids.')
  expect(text).not.toContain('`')
})

it('is a page without a script, with a policy that allows only its own style', async () => {
  await using gateway = await startTestGateway({})
  const page = await fetch(`${gateway.url}/docs/errors`)
  const text = await page.text()
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(text) ?? []
  expect(page.headers.get('content-security-policy')).toBe(
    `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  )
  expect(text).not.toMatch(/<script|style=|\son\w+=|https?:\/\/(?!127)/)
  const head = await fetch(`${gateway.url}/docs/errors`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

it('leads from a JSON-RPC error to its section', async () => {
  await using gateway = await startTestGateway({})
  const response = await fetch(`${gateway.url}/mcp`, { method: 'POST', body: '{}' })
  expect(await response.json()).toMatchObject({ error: { docs: '/docs/errors#token-missing' } })
  const answer = await gateway.fetch('tester', '/mcp', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  })
  expect(await answer.json()).toMatchObject({
    error: { data: { code: 'request-invalid', docs: '/docs/errors#request-invalid' } },
  })
})
