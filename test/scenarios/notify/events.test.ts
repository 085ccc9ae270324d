import { expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { firstAdministrator } from '../../support/people.ts'
import { call, recordingServer } from '../governance/support.ts'
import { hook, quickly, startReceiver } from './support.ts'

const ada: Principal = { kind: 'user', name: 'ada', role: 'administrator', person: true }

async function start(webhooks: ConfigInput['webhooks'], more: Partial<ConfigInput> = {}): Promise<TestGateway> {
  const { server } = recordingServer()
  const gateway = await startTestGateway({ servers: { files: server }, webhooks, ...more }, { notify: quickly })
  await gateway.reach('files', 'connected')
  return gateway
}

async function ask(gateway: TestGateway, given = {}): Promise<string> {
  const outcome = await call(gateway, 'files_write_thing', { given })
  if (outcome.kind !== 'waiting') throw new Error(`It was ${outcome.kind}`)
  return outcome.approval.id
}

it('tells of an approval and of its answer, signed, with the address of the page', async () => {
  const receiver = await startReceiver()
  const webhooks = { chat: hook(receiver.url, ['approval-requested', 'approval-answered']) }
  await using gateway = await start(webhooks, { listen: { port: 0, publicUrl: 'https://gate.example.com/' } })
  await firstAdministrator(gateway)
  const id = await ask(gateway, { path: '/srv/a.txt' })
  const asked = await poll(() => receiver.received[0])
  expect(asked.message).toMatchObject({
    type: 'approval-requested',
    data: {
      approval: { id, state: 'waiting', tool: 'files_write_thing', arguments: { path: '/srv/a.txt' } },
      url: `https://gate.example.com/approvals/${id}`,
    },
  })
  expect(Date.parse(asked.message.timestamp)).not.toBeNaN()
  expect(asked.headers['content-type']).toBe('application/json')
  await gateway.gateway.approvals.answer(ada, id, { verdict: 'deny', reason: 'not today' })
  const answered = await poll(() => receiver.received[1])
  expect(answered.message).toMatchObject({
    type: 'approval-answered',
    data: { approval: { id, state: 'denied', answers: [{ by: 'ada', reason: 'not today' }] } },
  })
  expect(answered.id).not.toBe(asked.id)
  const [endpoint] = await poll(async () => {
    const list = await gateway.gateway.webhooks.list()
    return list[0]?.delivered === 2 ? list : undefined
  })
  expect(endpoint).toMatchObject({ name: 'chat', state: 'ready', waiting: 0, failed: 0, dropped: 0 })
  expect(endpoint?.lastSuccessAt).toBeDefined()
})

it('points to the page at its own address where no public one is configured', async () => {
  const receiver = await startReceiver()
  await using gateway = await start({ chat: hook(receiver.url, ['approval-requested']) })
  const id = await ask(gateway)
  const { message } = await poll(() => receiver.received[0])
  expect(message.data.url).toBe(`${gateway.url}/approvals/${id}`)
})

it('sends an endpoint what it subscribed to, and nothing else', async () => {
  const [calls, approvals] = [await startReceiver(), await startReceiver()]
  await using gateway = await start({
    calls: hook(calls.url, ['call-ended']),
    approvals: hook(approvals.url, ['approval-requested']),
    off: hook(approvals.url, ['call-ended'], { enabled: false }),
  })
  await call(gateway, 'files_read_thing')
  await ask(gateway)
  await poll(() => (calls.received.length > 0 && approvals.received.length > 0) || undefined)
  await poll(async () => (await gateway.gateway.webhooks.list()).every(({ waiting }) => waiting === 0) || undefined)
  expect(calls.received.map(({ message }) => message.type)).toEqual(['call-ended'])
  expect(calls.received[0]?.message.data).toMatchObject({ call: { tool: 'files_read_thing', state: 'ok' } })
  expect(approvals.received.map(({ message }) => message.type)).toEqual(['approval-requested'])
})

it('leaves the arguments out where a message would be too large, and says so', async () => {
  const receiver = await startReceiver()
  await using gateway = await start({ chat: hook(receiver.url, ['approval-requested']) })
  const id = await ask(gateway, { text: 'x'.repeat(200_000) })
  const { body, message } = await poll(() => receiver.received[0])
  expect(body.length).toBeLessThan(65_536)
  expect(message.data).toMatchObject({ approval: { id, tool: 'files_write_thing' }, cut: true })
  expect(message.data.approval).not.toHaveProperty('arguments')
})

it('tells of an approval that the gateway which asked it could not tell of, and of none twice', async () => {
  const receiver = await startReceiver()
  await using gateway = await start({ chat: hook(receiver.url, ['approval-requested']) })
  const id = await ask(gateway)
  await poll(() => receiver.received[0])
  const { earlier: _earlier, recentCalls: _recent, ...approval } = await gateway.gateway.approvals.get(ada, id)
  gateway.gateway.events.emit('approval-requested', { approval, elsewhere: true })
  gateway.gateway.events.emit('approval-requested', { approval: { ...approval, id: 'approval_lost' }, elsewhere: true })
  await poll(async () => (await gateway.gateway.webhooks.list())[0]?.delivered === 2 || undefined)
  expect(receiver.received.map(({ message }) => Object(message.data.approval).id)).toEqual([id, 'approval_lost'])
  expect(receiver.received.at(-1)?.message.data).not.toHaveProperty('elsewhere')
})
