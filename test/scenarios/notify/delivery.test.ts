import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Delivery, DeliveryState } from '../../../src/contract/webhook.ts'
import type { NotifySettings } from '../../../src/notify/notify.ts'
import { type DatabaseKind, databases } from '../../storage/support.ts'
import { administrator, type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { hook, quickly, startReceiver } from './support.ts'

type Where = { readonly folder: string; readonly databaseUrl?: string }

async function placeOn(kind: DatabaseKind): Promise<Where> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return kind === 'SQLite' ? { folder } : { folder, databaseUrl: await freshDatabase() }
}

async function start(
  webhooks: ConfigInput['webhooks'],
  where: Partial<Where> = {},
  notify: Partial<NotifySettings> = {},
): Promise<TestGateway> {
  return startTestGateway({ webhooks }, { ...where, notify: { ...quickly, ...notify } })
}

/** Any event will do. */
function tell({ gateway }: TestGateway, ...connections: string[]): void {
  for (const connection of connections) gateway.events.emit('tools-changed', { connection })
}

const toldOf = (received: readonly { message: { data: Record<string, unknown> } }[]) =>
  received.map(({ message }) => message.data.connection)

async function find(gateway: TestGateway, state: DeliveryState): Promise<Delivery[]> {
  return (await gateway.gateway.webhooks.deliveries({ limit: 100, state })).items
}

async function reach(gateway: TestGateway, state: DeliveryState, count = 1): Promise<Delivery[]> {
  return poll(async () => {
    const found = await find(gateway, state)
    return found.length === count ? found : undefined
  })
}

describe.each(databases)('on %s', (kind) => {
  it('tries again until it is taken, with the same body under the same id, and lists how it went', async () => {
    let failures = 2
    const receiver = await startReceiver((_, response) => void response.writeHead(failures-- > 0 ? 500 : 200).end())
    await using gateway = await start({ chat: hook(receiver.url, ['tools-changed']) }, await placeOn(kind))
    tell(gateway, 'one')
    const [delivered] = await reach(gateway, 'delivered')
    expect(receiver.received.map(({ id }) => id)).toEqual([delivered?.id, delivered?.id, delivered?.id])
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
    expect(delivered).toMatchObject({ endpoint: 'chat', type: 'tools-changed', attempts: 3, status: 200 })
    expect(delivered?.error).toBeUndefined()
  })

  it('keeps what could not be delivered, and sends it again when somebody asks for it', async () => {
    let status = 503
    const receiver = await startReceiver((_, response) => void response.writeHead(status).end())
    await using gateway = await start({ chat: hook(receiver.url, ['tools-changed']) }, await placeOn(kind))
    tell(gateway, 'one')
    const [failed] = await reach(gateway, 'failed')
    expect(failed).toMatchObject({ attempts: 4, status: 503, error: expect.stringContaining('answered 503') })
    expect(receiver.received).toHaveLength(4)
    const [endpoint] = await gateway.gateway.webhooks.list()
    expect(endpoint).toMatchObject({ failed: 1, lastFailure: { error: expect.stringContaining('503') } })
    status = 200
    const again = await gateway.gateway.webhooks.retry(administrator, failed?.id ?? '')
    expect(again.id).toBe(failed?.id)
    await reach(gateway, 'delivered')
    expect(receiver.received.at(-1)?.id).toBe(failed?.id)
    const { items } = await gateway.gateway.audit.list({ limit: 5, subject: 'webhook:chat' })
    expect(items).toMatchObject([
      { principal: 'user:root', body: { action: 'delivery-retried', delivery: failed?.id } },
    ])
    await expect(gateway.gateway.webhooks.retry(administrator, failed?.id ?? '')).rejects.toMatchObject({
      code: 'request-invalid',
      message: 'The delivery was already delivered',
    })
    await expect(gateway.gateway.webhooks.retry(administrator, 'msg_none')).rejects.toMatchObject({
      code: 'delivery-not-found',
    })
  })

  it('goes on after a restart where it was, and repeats nothing that was delivered', async () => {
    const place = await placeOn(kind)
    const first = await startReceiver()
    const config = (port: number) => ({ chat: hook(`http://127.0.0.1:${port}/hook`, ['tools-changed']) })
    const gateway = await start(config(first.port), place)
    tell(gateway, 'before')
    await reach(gateway, 'delivered')
    await first.close() // from here on connections are refused
    tell(gateway, 'during')
    await poll(async () => (await find(gateway, 'waiting'))[0]?.error)
    tell(gateway, 'at the end')
    await gateway.close()

    const later = await startReceiver(undefined, { port: first.port })
    await using again = await start(config(first.port), place)
    await reach(again, 'delivered', 3)
    expect(toldOf(later.received).toSorted()).toEqual(['at the end', 'during'])
    expect(toldOf(first.received)).toEqual(['before'])
    expect(await find(again, 'waiting')).toEqual([])
  })

  it('gives up what waits for an endpoint that is configured no longer', async () => {
    const webhooks = { chat: hook('http://127.0.0.1:1/hook', ['tools-changed']) }
    await using gateway = await start(webhooks, await placeOn(kind), { pauses: [600_000], sweepEvery: 50 })
    tell(gateway, 'one')
    await poll(async () => (await find(gateway, 'waiting'))[0]?.error)
    await gateway.writeConfig({ webhooks: {} })
    const [failed] = await reach(gateway, 'failed')
    expect(failed).toMatchObject({ error: 'The endpoint was removed from the configuration' })
    await expect(gateway.gateway.webhooks.retry(administrator, failed?.id ?? '')).rejects.toMatchObject({
      message: 'The endpoint chat was removed from the configuration',
    })
  })
})

it('sends nothing more to an endpoint that is gone, also after a restart, until its entry changes', async () => {
  const place = await placeOn('SQLite')
  let status = 410
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end())
  const webhooks = { chat: hook(receiver.url, ['tools-changed']) }
  const first = await start(webhooks, place)
  tell(first, 'one')
  const [failed] = await reach(first, 'failed')
  expect(failed).toMatchObject({ attempts: 1, status: 410 })
  expect(await first.gateway.webhooks.list()).toMatchObject([{ name: 'chat', state: 'gone' }])
  await first.close()

  status = 200
  await using gateway = await start(webhooks, place)
  await poll(async () => (await gateway.gateway.webhooks.list())[0]?.state === 'gone' || undefined)
  tell(gateway, 'two')
  await expect(gateway.gateway.webhooks.retry(administrator, failed?.id ?? '')).rejects.toMatchObject({
    message: 'The endpoint chat answered 410 Gone; change its entry first',
  })
  await gateway.writeConfig({ webhooks: { chat: hook(receiver.url, ['tools-changed', 'config-rejected']) } })
  await poll(async () => (await gateway.gateway.webhooks.list())[0]?.state === 'ready' || undefined)
  tell(gateway, 'three')
  await reach(gateway, 'delivered')
  expect(toldOf(receiver.received)).toEqual(['one', 'three'])
})

it('holds up nobody for an endpoint that does not answer, and has few requests open there', async () => {
  const slow = await startReceiver(() => {})
  const quick = await startReceiver()
  await using gateway = await start({
    slow: hook(slow.url, ['tools-changed']),
    quick: hook(quick.url, ['tools-changed']),
  })
  const names = Array.from({ length: 20 }, (_, index) => String(index))
  tell(gateway, ...names)
  await poll(() => quick.received.length === 20 || undefined)
  expect(new Set(toldOf(quick.received))).toEqual(new Set(names))
  await poll(() => slow.received.length > 0 || undefined)
  expect(slow.received.length).toBeLessThanOrEqual(4)
})

it('lets only so many wait for an endpoint, drops the oldest, and says how many', async () => {
  const webhooks = { chat: hook('http://127.0.0.1:1/hook', ['tools-changed']) }
  const bounds = {
    waiting: 10,
    delivered: { count: 10, milliseconds: 60_000 },
    failed: { count: 10, milliseconds: 60_000 },
  }
  await using gateway = await start(webhooks, {}, { pauses: [600_000], sweepEvery: 50, bounds, mostIncoming: 1000 })
  const names = Array.from({ length: 50 }, (_, index) => String(index))
  for (const name of names) {
    tell(gateway, name)
    await new Promise((resolve) => setTimeout(resolve, 1)) // each with a time of its own
  }
  const [endpoint] = await poll(async () => {
    const list = await gateway.gateway.webhooks.list()
    return list[0]?.dropped === 40 && list[0].waiting === 10 ? list : undefined
  })
  expect(endpoint).toMatchObject({ dropped: 40, waiting: 10 })
})
