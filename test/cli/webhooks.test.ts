import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { recording, serveHere, until } from './support.ts'

const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`

it('lists endpoints and deliveries, tries an endpoint, and sends again what failed', async () => {
  let status = 410
  const receiver = createServer((_, response) => void response.writeHead(status).end())
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void receiver.close())
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  await using gateway = await serveHere({
    servers: { files: recording() },
    webhooks: { chat: { url, secret, events: ['server-changed'] } },
  })
  const failed = await until(async () => {
    const listed = await gateway.run('webhooks', 'deliveries', '--state', 'failed', '--json')
    const { items }: { items?: { id: string; endpoint: string }[] } = JSON.parse(listed.stdout)
    return items?.[0]
  })
  expect(failed.endpoint).toBe('chat')
  const list = await gateway.run('webhooks', 'list')
  expect(list.stdout).toMatch(/^chat +http:\/\/127\.0\.0\.1:\d+ +gone +never/m)
  expect(list.stderr).toContain('sallyport webhooks deliveries --state failed')
  const shown = await gateway.run('webhooks', 'deliveries', '--endpoint', 'chat')
  expect(shown.stdout).toMatch(/^msg_\S+ +chat +server-changed +failed +1 /m)

  const trial = await gateway.run('webhooks', 'test', 'chat')
  expect(trial.code).toBe(1)
  expect(trial.stdout).toContain('chat did not accept the event: ')
  status = 200
  const taken = await gateway.run('webhooks', 'test', 'chat', '--json')
  expect(taken).toMatchObject({ code: 0 })
  expect(taken.json()).toMatchObject({ delivered: true, status: 200 })
  const refused = await gateway.run('webhooks', 'retry', failed.id)
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('answered 410 Gone')
  expect((await gateway.run('webhooks', 'test', 'chad')).stderr).toContain('Did you mean chat?')
  expect([list, shown, trial, taken].map(({ stdout, stderr }) => stdout + stderr).join('')).not.toContain(secret)
})
