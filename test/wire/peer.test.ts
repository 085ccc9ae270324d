import { expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { createModernCodec } from '../../src/wire/modern.ts'
import { createPeer } from '../../src/wire/peer.ts'

it('tells an acknowledgement to the request that it names, and to no other', async () => {
  const peer = createPeer({
    carrier: { async send() {} },
    codec: createModernCodec({ name: 'test', version: '1.0.0' }),
    clock: systemClock,
    cancelsByClosing: false,
    clean: (params) => params,
    onNotification() {},
    onAmbiguous() {},
  })
  const heard: unknown[] = []
  const stop = new AbortController()
  const listen = () => {
    const { signal } = stop
    const onAcknowledged = (honoured: unknown) => heard.push(honoured)
    return peer.request('subscriptions/listen', {}, { signal, timeoutMs: 60_000, onAcknowledged })
  }
  const acknowledge = (honoured: string, id?: number) => {
    const _meta = id === undefined ? {} : { 'io.modelcontextprotocol/subscriptionId': id }
    const params = { notifications: honoured, _meta }
    const method = 'notifications/subscriptions/acknowledged'
    peer.receive(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method, params })))
  }
  const listening = listen()
  acknowledge('of another', 2)
  acknowledge('its own', 1)
  acknowledge('of nobody in particular')
  expect(heard).toEqual(['its own', 'of nobody in particular'])
  stop.abort()
  await expect(listening).rejects.toMatchObject({ code: 'call-cancelled' })
  acknowledge('too late', 1)
  expect(heard).toHaveLength(2)
})
