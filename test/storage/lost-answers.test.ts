import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createClaims } from '../../src/storage/claim.ts'
import { createPostgresDatabase, createSqliteDatabase } from '../../src/storage/dialect.ts'
import { openPostgresEngine } from '../../src/storage/postgres/engine.ts'
import { openSqliteEngine } from '../../src/storage/sqlite/engine.ts'
import { createStoredApprovals } from '../../src/storage/tables/approvals.ts'
import { createCallStore } from '../../src/storage/tables/calls.ts'
import { createGrantStore } from '../../src/storage/tables/grants.ts'
import { createIdempotencyStore } from '../../src/storage/tables/idempotency.ts'
import { createInstanceStore } from '../../src/storage/tables/instances.ts'
import { toProbe } from '../../src/storage/tables/memory.ts'
import type { Engine } from '../../src/storage/unit.ts'
import { createWriter } from '../../src/storage/writer.ts'
import {
  auditKey,
  callOf,
  type DatabaseKind,
  databases,
  endOf,
  numbersUpTo,
  observe,
  placeOn,
  sequencesIn,
} from './support.ts'

type Fault = 'none' | 'before-commit' | 'after-commit'

/** The real parts, with a fault where a thread dies: shortly before or shortly after a commit, never in between. */
async function openFaulty(kind: DatabaseKind) {
  const place = await placeOn(kind)
  const engine = await (place.databaseUrl === undefined
    ? openSqliteEngine({ folder: place.folder, instance: 'instance-1', auditKey, now: 1 })
    : openPostgresEngine({ url: place.databaseUrl, instance: 'instance-1', auditKey, clock: systemClock }))
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
  const database = kind === 'SQLite' ? createSqliteDatabase(writer) : createPostgresDatabase(writer)
  const instances = createInstanceStore({ database, instance: 'instance-1', bootId: 'boot-1', mark: undefined })
  await writer.commit([instances.start(1)])
  const claims = createClaims({
    writer,
    calls: createCallStore(database, 'instance-1'),
    keys: createIdempotencyStore(database, () => systemClock.now()),
    approvals: createStoredApprovals(database),
    grants: createGrantStore({ database, writer, now: () => systemClock.now() }),
    clock: systemClock,
  })
  onTestFinished(() => writer.close([instances.end(2)]))
  const observer = observe(place)
  const kindsOf = async (call: string) =>
    (await observer.all('select kind from audit where call = ? order by sequence', call)).map((row) => row.kind)
  return { fault, writer, claims, observer, kindsOf }
}

const faults = ['before-commit', 'after-commit'] as const

describe.each(databases)('on %s', (database) => {
  it.each(faults)('leaves no call running that got no permit (thread lost %s)', async (kind) => {
    const { fault, writer, claims, observer } = await openFaulty(database)
    const call = callOf('write')
    fault.next = kind
    await expect(claims.claim(call)).rejects.toMatchObject({ code: 'storage-unavailable' })
    expect(writer.findProblem()).toMatchObject({ code: 'storage-unavailable' })
    await writer.flush()
    expect(writer.findProblem()).toBeUndefined()
    expect(await observer.state(call.id)).toBe(kind === 'before-commit' ? undefined : 'failed')
    const entries = await sequencesIn(observer, 'instance-1')
    expect(entries).toEqual(numbersUpTo(kind === 'before-commit' ? 0 : 2))
  })

  it.each(faults)('writes the end of a call exactly once (thread lost %s)', async (kind) => {
    const { fault, writer, claims, observer, kindsOf } = await openFaulty(database)
    const writing = await claims.claim(callOf('write'))
    const reading = await claims.claim(callOf('read'))
    fault.next = kind
    claims.finish(writing, endOf('ok'))
    claims.finish(reading, endOf('ok'))
    claims.flushReads()
    await writer.settled()
    expect(writer.findProblem()).toMatchObject({ code: 'storage-unavailable' })
    await writer.flush()
    for (const { id } of [writing, reading]) {
      expect([await observer.state(id), await kindsOf(id)]).toEqual(['ok', ['intent', 'outcome']])
    }
  })

  it.each(faults)('lets no end of a call overtake its beginning (thread lost %s)', async (kind) => {
    const { fault, writer, claims, observer, kindsOf } = await openFaulty(database)
    const call = await claims.claim(callOf('read'))
    fault.next = kind
    claims.flushReads()
    await turn()
    claims.finish(call, endOf('ok'))
    await writer.settled()
    await writer.flush()
    expect([await observer.state(call.id), await kindsOf(call.id)]).toEqual(['ok', ['intent', 'outcome']])
  })
})
