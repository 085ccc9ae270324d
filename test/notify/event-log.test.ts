import { expect, it } from 'vitest'
import type { Approval } from '../../src/contract/approval.ts'
import { type EventTable, eventNames } from '../../src/contract/events.ts'
import { createEmitter } from '../../src/lib/emitter.ts'
import { createEventLog } from '../../src/notify/event-log.ts'

function open() {
  const events = createEmitter<EventTable>(() => {})
  const log = createEventLog('instance_1', events, eventNames)
  return { events, log, idOf: (number: number) => `instance_1-${number}` }
}

function questionWith(text: string): Approval {
  return {
    id: 'approval_1',
    state: 'waiting',
    call: 'call_1',
    tool: 'files_write_thing',
    server: 'files',
    title: 'Write thing',
    principal: 'agent:tester',
    arguments: { text },
    hash: '',
    risk: 'write',
    reason: '',
    approvers: ['any'],
    requestedAt: '',
    expiresAt: '',
    answers: [],
  }
}

it('tells what came after an id, in order, and nothing of what came before anybody listened', () => {
  const { events, log, idOf } = open()
  events.emit('tools-changed', { connection: 'before' })
  expect(log.since(idOf(0))).toEqual([])
  for (const connection of ['a', 'b', 'c']) events.emit('tools-changed', { connection })
  expect(log.since(idOf(1))).toMatchObject([{ event: { connection: 'b' } }, { event: { connection: 'c' } }])
})

it('says that it cannot tell for an id of another instance, one that is to come, and one that is long past', () => {
  const { events, log, idOf } = open()
  log.listen(() => {})
  for (let n = 0; n < 5000; n++) events.emit('tools-changed', { connection: String(n) })
  expect(log.since('instance_2-4999')).toBeUndefined()
  expect(log.since(idOf(5001))).toBeUndefined()
  expect(log.since(idOf(1))).toBeUndefined()
  expect(log.since(idOf(4990))).toHaveLength(10)
})

it('keeps little of approvals with long arguments', () => {
  const { events, log, idOf } = open()
  log.listen(() => {})
  const approval = questionWith('x'.repeat(4_000_000))
  for (let n = 0; n < 20; n++) events.emit('approval-requested', { approval })
  expect(log.since(idOf(0))).toBeUndefined()
  expect(log.since(idOf(19))).toHaveLength(1)
  expect(log.since(idOf(14))).toBeUndefined()
})
