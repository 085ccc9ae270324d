import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { WebhookEndpoint } from '../../../src/contract/webhook.ts'
import type { Log } from '../../../src/lib/log.ts'
import { administrator, type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { addPerson, firstAdministrator } from '../../support/people.ts'
import { hook, quickly, startReceiver, whsec } from './support.ts'

async function start(webhooks: ConfigInput['webhooks'], more: Partial<ConfigInput> = {}, log?: Log) {
  return startTestGateway({ webhooks, ...more }, { notify: quickly, ...(log && { log }) })
}

const tell = ({ gateway }: TestGateway, connection: string) => gateway.events.emit('tools-changed', { connection })

it('is looked at by auditors and served by administrators, over REST', async () => {
  let status = 500
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end())
  await using gateway = await start({ chat: hook(receiver.url, ['tools-changed']) })
  const ada = await firstAdministrator(gateway)
  const auditor = await addPerson(gateway, ada, 'una', 'auditor')
  tell(gateway, 'one')
  const failed = await poll(async () => {
    const { text } = await auditor.request('GET', '/api/webhooks/deliveries?state=failed')
    return JSON.parse(text).items[0]
  })
  expect(failed).toMatchObject({ endpoint: 'chat', type: 'tools-changed', state: 'failed', attempts: 4, status: 500 })
  const listed = JSON.parse((await auditor.request('GET', '/api/webhooks')).text)
  expect(listed.items.map((item: unknown) => WebhookEndpoint.parse(item))).toMatchObject([
    { name: 'chat', target: `http://127.0.0.1:${receiver.port}`, events: ['tools-changed'], state: 'ready', failed: 1 },
  ])
  expect((await auditor.request('POST', `/api/webhooks/deliveries/${failed.id}/retry`)).status).toBe(403)
  expect((await auditor.request('POST', '/api/webhooks/chat/test')).status).toBe(403)
  status = 204
  const retried = await ada.request('POST', `/api/webhooks/deliveries/${failed.id}/retry`)
  expect([retried.status, JSON.parse(retried.text).id]).toEqual([200, failed.id])
  await poll(async () => {
    const { text } = await ada.request('GET', '/api/webhooks/deliveries?state=delivered&endpoint=chat')
    return JSON.parse(text).items[0]
  })
  expect((await ada.request('POST', '/api/webhooks/deliveries/msg_none/retry')).status).toBe(404)
})

it('sends a test now, and tells status and duration, or why it did not work', async () => {
  let status = 200
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end())
  await using gateway = await start({
    chat: hook(receiver.url, ['approval-requested'], { enabled: false }),
    nobody: hook('http://127.0.0.1:1/hook', ['approval-requested']),
    unnamed: hook(receiver.url, ['approval-requested'], { secret: '${NOWHERE}' }),
  })
  const ada = await firstAdministrator(gateway)
  const test = async (name: string) => {
    const reply = await ada.request('POST', `/api/webhooks/${name}/test`)
    return { http: reply.status, ...JSON.parse(reply.text) }
  }
  expect(await test('chat')).toMatchObject({ http: 200, delivered: true, status: 200, durationMs: expect.any(Number) })
  expect(receiver.received.map(({ message }) => message)).toMatchObject([{ type: 'test', data: { endpoint: 'chat' } }])
  status = 418
  expect(await test('chat')).toMatchObject({ delivered: false, status: 418, error: { code: 'server-refused' } })
  expect(await test('nobody')).toMatchObject({ delivered: false, error: { code: 'connect-failed' } })
  expect(await test('unnamed')).toMatchObject({ delivered: false, error: { code: 'variable-missing' } })
  expect(await test('chad')).toMatchObject({
    http: 404,
    error: { code: 'webhook-not-found', message: 'No webhook is named chad. Did you mean chat?' },
  })
  const [, , unnamed] = await gateway.gateway.webhooks.list()
  expect(unnamed).toMatchObject({ name: 'unnamed', error: expect.stringContaining('NOWHERE') })
  expect((await gateway.gateway.webhooks.deliveries({ limit: 10 })).items).toEqual([])
})

it('takes its secret from the store, changes it without a gap, and shows it to nobody', async () => {
  const [stored, literal, older] = ['stored', 'literal', 'earlier'].map(
    (text) => `whsec_${Buffer.from(`${text} secret of 32 bytes or more`).toString('base64')}`,
  ) as [string, string, string]
  const first = await startReceiver(undefined, { secret: stored })
  const second = await startReceiver(undefined, { secret: literal })
  const rotating = await startReceiver(undefined, { secret: older })
  const lines: string[] = []
  const note = (facts: object, message: string) => void lines.push(JSON.stringify({ ...facts, message }))
  const log: Log = { debug: note, info: note, warn: note, error: note }
  await using gateway = await start(
    {
      stored: hook(first.url, ['tools-changed', 'config-changed'], { secret: '${HOOK_SECRET}' }),
      literal: hook(second.url, ['tools-changed', 'config-changed'], { secret: literal }),
      rotating: hook(rotating.url, ['tools-changed'], { secret: `\${HOOK_SECRET} ${older}` }),
      refused: hook('http://127.0.0.1:1/', ['tools-changed'], { secret: literal }),
    },
    {},
    log,
  )
  const ada = await firstAdministrator(gateway)
  const set = await ada.request('PUT', '/api/secrets/HOOK_SECRET', { value: stored })
  expect(set.status).toBe(200)
  tell(gateway, 'one')
  await poll(() => (first.received[0] && second.received[0] && rotating.received[0]) || undefined)
  await poll(async () => (await gateway.gateway.webhooks.deliveries({ limit: 9, state: 'failed' })).items[0])
  await gateway.gateway.webhooks.test(administrator, 'literal', new AbortController().signal)
  await gateway.gateway.audit.verify(new AbortController().signal)
  const seen = await Promise.all(
    ['config', 'webhooks', 'webhooks/deliveries', 'audit', 'secrets', 'status', 'audit/export'].map(
      async (path) => (await ada.request('GET', `/api/${path}`)).text,
    ),
  )
  const everything = [...seen, ...lines, await readFile(join(gateway.folder, 'data', 'anchors.jsonl'), 'utf8')]
  for (const value of [stored, literal, older]) {
    for (const text of [value, value.replace('whsec_', '')])
      expect(everything.filter((one) => one.includes(text))).toEqual([])
  }
  const { webhooks } = JSON.parse(seen[0] ?? '').config
  expect([webhooks.stored.secret, webhooks.literal.secret]).toEqual(['${HOOK_SECRET}', '[secret]'])
})

it('does not hand a secret to a host that it is not for', async () => {
  const receiver = await startReceiver()
  await using gateway = await start({ chat: hook(receiver.url, ['tools-changed'], { secret: '${HOOK_SECRET}' }) })
  const ada = await firstAdministrator(gateway)
  await ada.request('PUT', '/api/secrets/HOOK_SECRET', { value: whsec, hosts: ['elsewhere.example.com'] })
  const trial = await gateway.gateway.webhooks.test(administrator, 'chat', new AbortController().signal)
  expect(trial).toMatchObject({ delivered: false, error: { code: 'variable-missing' } })
  expect(receiver.received).toEqual([])
})
