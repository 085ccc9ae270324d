import { expect, it } from 'vitest'
import { createDelivery } from '../../src/audit/delivery.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { temporaryFolder } from '../storage/support.ts'
import { poll } from '../support/gateway.ts'
import { fill, openRecord } from './support.ts'

const backoff = { first: 10, most: 40, factor: 2 }

it('delivers in order, again and again until they are taken', async () => {
  const taken: string[] = []
  let failures = 3
  const delivery = createDelivery({
    target: 'there',
    async deliver(line) {
      if (failures-- > 0) throw new Error('not now')
      taken.push(line)
    },
    clock: systemClock,
    log: silentLog,
    backoff,
  })
  for (const line of ['1', '2', '3']) delivery.send(line)
  await poll(() => delivery.status().error)
  await poll(() => taken.length === 3 || undefined)
  expect(taken).toEqual(['1', '2', '3'])
  expect(delivery.status()).toMatchObject({ waiting: 0, lost: 0 })
  expect(delivery.status().error).toBeUndefined()
})

it('gives up the oldest when too many wait, and says how many', async () => {
  const delivery = createDelivery({
    target: 'nowhere',
    deliver: () => Promise.reject(new Error('never')),
    clock: systemClock,
    log: silentLog,
  })
  for (let line = 0; line < 130; line++) delivery.send(String(line))
  await poll(() => delivery.status().error)
  expect(delivery.status()).toMatchObject({ waiting: 100, lost: 30, error: 'never' })
  delivery.close()
})

it('does not hold up a call, or the end of the gateway, for an address that never answers', async () => {
  const settings = { anchors: { webhook: 'http://127.0.0.1:9/' } }
  const { storage, audit, close } = await openRecord(temporaryFolder(), {
    settings,
    post: (_url, _body, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gone')))),
  })
  await fill(storage, 2)
  await audit.anchor()
  await poll(() =>
    audit
      .anchors()
      .map(({ waiting }) => waiting)
      .join() === '0,2'
      ? true
      : undefined,
  )
  expect(await audit.verify(new AbortController().signal)).toMatchObject({ clean: true })
  await close()
})
