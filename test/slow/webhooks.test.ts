import { expect, it } from 'vitest'
import { serveWith } from '../cli/support.ts'
import { hook, startReceiver } from '../scenarios/notify/support.ts'
import { poll, startTestGateway } from '../support/gateway.ts'
import { freshDatabase, runOn } from '../support/postgres.ts'

const key = Buffer.alloc(32, 7).toString('base64')

it('has a delivery of a killed gateway made by another on the same database, under the same id', async () => {
  let answers = false
  const receiver = await startReceiver((_, response) => (answers ? void response.writeHead(204).end() : undefined))
  const databaseUrl = await freshDatabase()
  const webhooks = { chat: hook(receiver.url, ['config-changed']) }
  await using living = await startTestGateway({ webhooks }, { databaseUrl })
  const environment = { SALLYPORT_DATABASE_URL: databaseUrl, SALLYPORT_KEY: key }
  await using killed = await serveWith(environment, { webhooks })
  const added = killed.run('servers', 'add', 'files', '--url', 'http://127.0.0.1:1/mcp')
  const { id } = await poll(() => receiver.received[0], 30_000)
  await added
  const [taken] = await runOn(databaseUrl, 'select instance from deliveries where id = $1', [id])
  expect(taken?.instance).not.toBe(living.gateway.instance)
  await killed.stop('SIGKILL')
  answers = true
  const [delivered] = await poll(async () => {
    const { items } = await living.gateway.webhooks.deliveries({ limit: 10, state: 'delivered' })
    return items.length > 0 ? items : undefined
  }, 60_000)
  expect(delivered).toMatchObject({ id, attempts: 1 })
  expect(receiver.received.map((each) => each.id)).toEqual([id, id])
})
