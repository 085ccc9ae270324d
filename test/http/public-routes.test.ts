import { expect, it } from 'vitest'
import { z } from 'zod'
import { findPublicRoute, type PublicRouteName, publicRoutes } from '../../src/contract/public-routes.ts'
import { startTestGateway } from '../support/gateway.ts'

const Description = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })

/** One address of each public route. */
const examples: Readonly<Record<PublicRouteName, string>> = {
  live: 'GET /livez',
  ready: 'GET /readyz',
  proof: `GET /proof?challenge=${Buffer.alloc(32, 1).toString('base64url')}`,
  signIn: 'POST /api/sign-in',
  setupState: 'GET /setup/state',
  setup: 'GET /setup',
  pages: 'GET /approvals',
  errorDocs: 'GET /docs/errors',
  files: 'GET /icon.svg',
}

/** Addresses that are not described by OpenAPI, and some that do not exist. */
const others = [
  'POST /mcp',
  'GET /mcp',
  'DELETE /mcp',
  'POST /mcp/t/support',
  'POST /mcp/s/files',
  'GET /api/openapi.json',
  'GET /api/events',
  'GET /api/audit/export',
  'GET /api',
  'POST /livez',
  'PUT /setup',
  'GET /api/sign-in',
  'GET /metrics',
  'GET /setup/',
  'GET /docs',
  'GET /docs/errors/',
  'POST /docs/errors',
  'GET /docs/errors/../../api/servers',
  'GET /approvals/../api/servers',
  'GET //api/servers',
  'GET /assets/../../package.json',
  'GET /.sallyport/admin-token',
]

it('answers without a token or a sign-in only on the routes of the table', async () => {
  await using gateway = await startTestGateway({})
  const send = async (line: string) => {
    const [method = '', target = ''] = line.split(' ')
    const { status } = await fetch(`${gateway.url}${target}`, { method })
    return status
  }
  const described = await gateway.fetch('tester', '/api/openapi.json')
  const { paths } = Description.parse(await described.json())
  const lines = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} /api${path.replaceAll(/\{\w+\}/g, 'x')}`),
  )
  expect(lines.length).toBeGreaterThan(70)

  const open: string[] = []
  for (const line of [...lines, ...others]) if ((await send(line)) !== 401) open.push(line)
  expect(open).toEqual(['POST /api/sign-in'])

  for (const [name, line] of Object.entries(examples)) {
    const [method, target = ''] = line.split(' ')
    expect(findPublicRoute(method, target.split('?', 1)[0] ?? ''), line).toBe(name)
    expect(await send(line), line).not.toBe(401)
  }
})

it('says of every public route what proves the caller, what limits it and what it reveals', () => {
  for (const [name, { proof, limit, reveals }] of Object.entries(publicRoutes)) {
    for (const text of [proof, limit, reveals]) expect(text.length, name).toBeGreaterThan(3)
  }
})
