import { setImmediate as turn } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createCallStore } from '../../src/storage/calls.ts'
import { createClaims } from '../../src/storage/claim.ts'
import { createInstanceStore } from '../../src/storage/instances.ts'
import { toProbe } from '../../src/storage/memory.ts'
import { createSqliteDatabase } from '../../src/storage/sqlite-dialect.ts'
import { openSqliteEngine } from '../../src/storage/sqlite-engine.ts'
import type { Engine } from '../../src/storage/unit.ts'
import { createWriter } from '../../src/storage/writer.ts'
import { callOf, endOf, numbersUpTo, readerOf, sequencesOf, temporaryFolder } from './support.ts'

type Fault = 'none' | 'before-commit' | 'after-commit'

/** The real parts, with a fault where a thread dies: shortly before or shortly after a commit, never in between. */
async function openFaulty() {
  const folder = temporaryFolder()
  const engine = await openSqliteEngine({ folder, instance: 'instance-1', now: 1 })
  const fault: { next: Fault } = { next: 'none' }
  const faulty: Engine = {
    ...engine,
    async run(units) {
      const now = fault.next
      fault.next = 'none'
      const outcomes = now === 'before-commit' ? [] : await engine.run(units)
      await turn()
      if (now !== 'none') throw new GatewayError('storage-unavailable', 'The answer was lost')
      return outcomes
    },
  }
  const writer = createWriter({
    engine: faulty,
    reopen: async () => faulty,
    probe: () => toProbe(database, 1),
    clock: systemClock,
    log: silentLog,
  })
  const database = createSqliteDatabase(writer)
  const instances = createInstanceStore(database, 'instance-1', 'boot-1')
  await writer.commit([instances.start(1)])
  const claims = createClaims({ writer, calls: createCallStore(database, 'instance-1'), clock: systemClock })
  onTestFinished(() => writer.close([instances.end(2)]))
  const reader = readerOf(folder)
  const kindsOf = (call: string) =>
    reader.all('select kind from audit where call = ? order by sequence', call).map(({ kind }) => kind)
  return { fault, writer, claims, reader, kindsOf }
}

const faults = ['before-commit', 'after-commit'] as const

it.each(faults)('leaves no call running that got no permit (thread lost %s)', async (kind) => {
  const { fault, writer, claims, reader } = await openFaulty()
  const call = callOf('write')
  fault.next = kind
  await expect(claims.claim(call)).rejects.toMatchObject({ code: 'storage-unavailable' })
  expect(writer.healthy()).toBe(false)
  await writer.flush()
  expect(writer.healthy()).toBe(true)
  expect(reader.state(call.id)).toBe(kind === 'before-commit' ? undefined : 'failed')
  const entries = sequencesOf(reader, 'instance-1')
  expect(entries).toEqual(numbersUpTo(kind === 'before-commit' ? 0 : 2))
})

it.each(faults)('writes the end of a call exactly once (thread lost %s)', async (kind) => {
  const { fault, writer, claims, reader, kindsOf } = await openFaulty()
  const writing = await claims.claim(callOf('write'))
  const reading = await claims.claim(callOf('read'))
  fault.next = kind
  claims.finish(writing, endOf('ok'))
  claims.finish(reading, endOf('ok'))
  claims.flushReads()
  await writer.settled()
  expect(writer.healthy()).toBe(false)
  await writer.flush()
  for (const { id } of [writing, reading]) {
    expect([reader.state(id), kindsOf(id)]).toEqual(['ok', ['intent', 'outcome']])
  }
})

it.each(faults)('lets no end of a call overtake its beginning (thread lost %s)', async (kind) => {
  const { fault, writer, claims, reader, kindsOf } = await openFaulty()
  const call = await claims.claim(callOf('read'))
  fault.next = kind
  claims.flushReads()
  await turn()
  claims.finish(call, endOf('ok'))
  await writer.settled()
  await writer.flush()
  expect([reader.state(call.id), kindsOf(call.id)]).toEqual(['ok', ['intent', 'outcome']])
})
