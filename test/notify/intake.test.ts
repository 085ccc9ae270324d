import { expect, it } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import type { EventName, EventTable } from '../../src/contract/events.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createEmitter } from '../../src/lib/emitter.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createIntake, type IntakeParts } from '../../src/notify/intake.ts'
import type { NewDelivery } from '../../src/storage/tables/deliveries.ts'
import { poll } from '../support/gateway.ts'

function start(wanted: EventName[], more: Partial<IntakeParts> = {}) {
  const emitter = createEmitter<EventTable>(() => {})
  const listening = new Set<EventName>()
  const written: string[] = []
  let dropped = 0
  const subscriptions = [...wanted]
  const intake = createIntake({
    events: {
      emit: emitter.emit,
      on(name, listener) {
        listening.add(name)
        const stop = emitter.on(name, listener)
        return () => {
          listening.delete(name)
          stop()
        }
      },
    },
    subscribed: (name) => (subscriptions.includes(name) ? ['chat'] : []),
    toDeliveries: ({ name, event, at }) => [
      { id: JSON.stringify(event), endpoint: 'chat', type: name, body: '{}', createdAt: at },
    ],
    async add(deliveries) {
      written.push(...deliveries.map(({ id }) => id))
    },
    onAdded() {},
    onDropped: (names) => {
      dropped += names.length
    },
    most: 10,
    clock: systemClock,
    log: silentLog,
    ...more,
  })
  intake.sync()
  const tell = (count: number, from = 1) => {
    for (let each = from; each < from + count; each++) emitter.emit('tools-changed', { connection: String(each) })
  }
  return { intake, emitter, listening, written, subscriptions, tell, dropped: () => dropped }
}

const connections = (written: readonly string[]) => written.map((text) => Number(JSON.parse(text).connection))

it('listens to exactly the events that an endpoint wants', async () => {
  const { intake, listening, subscriptions } = start(['approval-requested'])
  expect([...listening]).toEqual(['approval-requested'])
  subscriptions.push('call-ended')
  intake.sync()
  expect([...listening].sort()).toEqual(['approval-requested', 'call-ended'])
  subscriptions.length = 0
  intake.sync()
  expect(listening.size).toBe(0)
  subscriptions.push('call-ended')
  await intake.close()
  intake.sync()
  expect(listening.size).toBe(0)
})

it('writes in order, many in one commit, and is done when it is closed', async () => {
  const commits: number[] = []
  const { intake, tell, written } = start(['tools-changed'], { most: 1000, add: async (rows) => void add(rows) })
  const add = (rows: readonly NewDelivery[]) => {
    commits.push(rows.length)
    written.push(...rows.map(({ id }) => id))
  }
  tell(250)
  await intake.close()
  expect(connections(written)).toEqual(Array.from({ length: 250 }, (_, index) => index + 1))
  expect(commits).toEqual([100, 100, 50])
})

it('makes nobody wait, and drops the oldest by count while the store does not answer', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const { intake, tell, written, dropped } = start(['tools-changed'], {
    async add(rows) {
      await answered
      written.push(...rows.map(({ id }) => id))
    },
  })
  tell(1)
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve))) // the first is under way
  tell(30, 2)
  expect(dropped()).toBe(20)
  answer()
  await intake.close()
  expect(connections(written)).toEqual([1, ...Array.from({ length: 10 }, (_, index) => index + 22)])
})

it('tries again what the store did not take, and loses nothing of it', async () => {
  let failures = 2
  const { intake, tell, written } = start(['tools-changed'], {
    clock: { ...systemClock, after: (_, task) => systemClock.after(5, task) },
    async add(rows) {
      if (failures-- > 0) throw new GatewayError('storage-unavailable', 'not now')
      written.push(...rows.map(({ id }) => id))
    },
  })
  tell(3)
  await poll(() => written.length === 3 || undefined)
  expect(connections(written)).toEqual([1, 2, 3])
  await intake.close()
})

it('leaves to the other gateway what happened there', async () => {
  const { intake, emitter, written } = start(['config-changed'])
  emitter.emit('config-changed', { changed: ['rules'], by: 'user:ada', elsewhere: true })
  emitter.emit('config-changed', { changed: ['limits'], by: 'file' })
  await intake.close()
  expect(written.map((text) => JSON.parse(text).changed)).toEqual([['limits']])
})
