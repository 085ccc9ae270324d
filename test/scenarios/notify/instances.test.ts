import { expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { firstAdministrator } from '../../support/people.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { call, recordingServer } from '../governance/support.ts'
import { preparePlace } from '../life/process.ts'
import { hook, quickly, startReceiver } from './support.ts'

const ada: Principal = { kind: 'user', name: 'ada', role: 'administrator', person: true }

it('tells of an approval and its answer once, however many gateways on one database hear of them', async () => {
  const receiver = await startReceiver()
  const databaseUrl = await freshDatabase()
  const config = {
    servers: { files: recordingServer().server },
    webhooks: { chat: hook(receiver.url, ['approval-requested', 'approval-answered']) },
  }
  await using first = await startTestGateway(config, { databaseUrl, notify: quickly })
  await using second = await startTestGateway(config, { databaseUrl, notify: quickly })
  await first.reach('files', 'connected')
  await firstAdministrator(first)
  const heard: string[] = []
  for (const { gateway } of [first, second]) {
    gateway.events.on('approval-requested', ({ approval }) => heard.push(`asked ${approval.id}`))
    gateway.events.on('approval-answered', ({ approval }) => heard.push(`answered ${approval.id}`))
  }
  const expected: string[] = []
  for (let n = 0; n < 5; n++) {
    const outcome = await call(first, 'files_write_thing', { given: { n } })
    if (outcome.kind !== 'waiting') throw new Error(`It was ${outcome.kind}`)
    const { id } = outcome.approval
    await poll(() => heard.filter((text) => text === `asked ${id}`).length === 2 || undefined)
    await second.gateway.approvals.answer(ada, id, { verdict: n % 2 === 0 ? 'deny' : 'approve' })
    await poll(() => heard.filter((text) => text === `answered ${id}`).length === 2 || undefined)
    expected.push(`approval-requested ${id}`, `approval-answered ${id}`)
  }
  await poll(() => receiver.received.length >= expected.length || undefined)
  await poll(async () => (await first.gateway.webhooks.list())[0]?.delivered === expected.length || undefined)
  const told = receiver.received.map(({ message }) => `${message.type} ${Object(message.data.approval).id}`)
  expect(told.toSorted()).toEqual(expected.toSorted())
  // Whoever sent each thing that a gateway hears would have sent everything twice.
  expect(heard).toHaveLength(2 * expected.length)
})

it('loses nothing when a gateway is killed in the middle of an attempt, and sends it under the same id', async () => {
  let answers = false
  const receiver = await startReceiver((_, response) => (answers ? void response.writeHead(204).end() : undefined))
  const place = await preparePlace({
    servers: { files: recordingServer().server },
    webhooks: { chat: hook(receiver.url, ['approval-requested']) },
  })
  const killed = await place.start()
  const client = await killed.connect('auto')
  await poll(async () => (await client.listTools()).tools.length > 0 || undefined)
  void client.callTool({ name: 'files_write_thing', arguments: {} }).catch(() => {})
  const { id } = await poll(() => receiver.received[0])
  await killed.end('SIGKILL')
  answers = true
  const next = await place.start()
  const [delivered] = await poll(async () => {
    const { body } = await next.rest('/api/webhooks/deliveries?state=delivered')
    return Array.isArray(body.items) && body.items.length > 0 ? body.items : undefined
  })
  expect(delivered).toMatchObject({ id, attempts: 1, state: 'delivered' })
  expect(receiver.received.map((each) => each.id)).toEqual([id, id])
  await next.end('SIGTERM')
})
