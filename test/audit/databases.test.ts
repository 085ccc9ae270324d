import { appendFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Audit, verifyFile } from '../../src/audit/audit.ts'
import type { AuditReport } from '../../src/contract/audit.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { changeFile, databases, observe, type Place, placeOn } from '../storage/support.ts'
import { poll } from '../support/gateway.ts'
import { connectTo, moveDatabaseClock } from '../support/postgres.ts'
import { fill, kindsOf, openRecord, type Recording } from './support.ts'

const day = 86_400_000
const never = new AbortController().signal

/** Days later. */
function clockAfter(days: number): Clock {
  return { ...systemClock, common: true, now: () => Date.now() + days * day }
}

async function change({ folder, databaseUrl }: Place, ...statements: string[]): Promise<void> {
  if (databaseUrl === undefined) return changeFile(folder, ...statements)
  const client = await connectTo(databaseUrl)
  for (const statement of statements) await client.query(statement)
  await client.end()
}

/** Takes away what keeps the column from being null, as whoever has the database can. */
async function allowNullHashes(place: Place): Promise<void> {
  if (place.databaseUrl !== undefined) return change(place, 'alter table audit alter column hash drop not null')
  await change(
    place,
    'alter table audit rename column hash to was',
    'alter table audit add column hash text',
    'update audit set hash = was',
  )
}

/** Some gateways one after the other, each some days after the one before. */
async function fillOverDays(place: Place, ...days: number[]): Promise<void> {
  for (const after of days) {
    const { storage, close } = await openOn(place, after)
    await fill(storage, 2, clockAfter(after).now)
    await close()
  }
}

/** Opens it some days later, by the clocks of the gateway and of the database. */
async function openOn(place: Place, today: number, settings: object = {}): Promise<Recording> {
  if (place.databaseUrl !== undefined) await moveDatabaseClock(place.databaseUrl, today * day)
  return openRecord(place, { clock: clockAfter(today), settings })
}

/** After its first pass of retention, which begins at the start. */
async function afterFirstPass(recording: Recording): Promise<Recording> {
  await recording.audit.verify(never) // waits for the pass
  return recording
}

async function countEntries(place: Place): Promise<number> {
  const [row] = await observe(place).all('select count(*) as entries from audit')
  return Number(row?.entries)
}

/** Opens it so late that some days are over, confirms the clock, and waits until they are gone. */
async function openAfterRetention(place: Place, today: number, retention: number): Promise<Recording> {
  const recording = await openOn(place, today, { retention })
  const { now } = clockAfter(today)
  await recording.audit.confirmClock('user:ada', now())
  const oldest = now() - retention * day
  await poll(async () => {
    const { items } = await recording.storage.audit.list({ limit: 1, until: oldest })
    return items.length === 0 || undefined
  })
  return recording
}

async function exportAndVerify(audit: Audit, { folder }: Place, { now }: Clock): Promise<AuditReport> {
  const file = join(folder, 'export.jsonl')
  for await (const piece of audit.export({ format: 'jsonl' }, never)) appendFileSync(file, piece)
  return verifyFile(file, { folder, anchors: [], now: now(), signal: never })
}

describe.each(databases)('on %s', (kind) => {
  it('proves the record while it is written', async () => {
    const place = await placeOn(kind)
    const { storage, audit, close } = await openRecord(place)
    const filling = fill(storage, 5)
    const reports = [audit.verify(never), audit.verify(never)]
    expect((await Promise.all(reports)).map(({ findings }) => findings)).toEqual([[], []])
    await filling
    await audit.anchor()
    expect(await audit.verify(never)).toMatchObject({ clean: true, keyed: true, found: 0 })
    await close()
  })

  it('finds what was changed in the database', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0, 1)
    const { audit, close } = await openRecord(place, { clock: clockAfter(2) })
    expect(await audit.verify(never)).toMatchObject({ clean: true, chains: 3 })
    await change(place, "update audit set principal = 'agent:other' where sequence = 3")
    expect(kindsOf(await audit.verify(never))).toEqual(['altered'])
    await change(place, 'delete from audit where sequence = 4')
    expect(kindsOf(await audit.verify(never))).toEqual(['altered', 'missing', 'not-recorded'])
    await close()
  })

  it.each(['empty', 'null'])('names the entry whose hash was made %s, and no entry after it', async (how) => {
    const place = await placeOn(kind)
    const { storage, audit, close } = await openRecord(place)
    await fill(storage, 3)
    await audit.anchor()
    const { instance } = storage
    if (how === 'null') await allowNullHashes(place)
    const value = how === 'null' ? 'null' : "''"
    await change(place, `update audit set hash = ${value} where sequence in (5, 7) and instance = '${instance}'`)
    const [first, second, ...others] = (await audit.verify(never)).findings
    expect(first).toMatchObject({ kind: 'unchained', instance, sequence: 5 })
    expect(first?.message).toBe(`The hash of entry ${instance}:5 is missing`)
    expect(second).toMatchObject({ kind: 'unchained', instance, sequence: 7 })
    expect(others).toEqual([])
    expect((await exportAndVerify(audit, place, systemClock)).findings[0]).toEqual(first)
    await close()
  })

  it('does not take a chain whose hashes were blanked before the next start for older than the chain', async () => {
    const place = await placeOn(kind)
    const killed = await openRecord(place)
    await killed.audit.close()
    await fill(killed.storage, 2) // no anchor follows
    await killed.storage.close()
    await change(place, "update audit set hash = '', principal = 'agent:other'")
    const { audit, close } = await openRecord(place, { clock: clockAfter(1) })
    const { findings } = await audit.verify(never)
    expect(findings[0]).toMatchObject({ kind: 'unchained', sequence: 1 })
    await close()
  })

  it('lists what was done in pages, whatever is asked for, and finds the rare among the many', async () => {
    const place = await placeOn(kind)
    const { storage, close } = await openRecord(place)
    await fill(storage, 3)
    const all = await storage.audit.list({ limit: 1000 })
    const paged: string[] = []
    let cursor: string | undefined
    do {
      const page = await storage.audit.list({ limit: 4, subject: 'files_*', ...(cursor && { cursor }) })
      paged.push(...page.items.map(({ instance, sequence }) => `${instance}:${sequence}`))
      cursor = page.next
    } while (cursor !== undefined)
    const wanted = all.items.filter(({ subject }) => subject.startsWith('files_'))
    expect(paged).toEqual(wanted.map(({ instance, sequence }) => `${instance}:${sequence}`))
    expect((await storage.audit.list({ limit: 100, state: 'tool-error' })).items).toHaveLength(6)
    expect((await storage.audit.list({ limit: 100, subject: 'server:files' })).items).toHaveLength(3)
    await close()
  })

  it('lets go of what is old only behind a checkpoint, and stays provable', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0, 4, 8)
    const { audit, storage, close } = await openAfterRetention(place, 10, 5)
    const report = await audit.verify(never)
    expect(report.findings).toEqual([])
    expect(report).toMatchObject({ clean: true, chains: 2 })
    expect(report.checked.join(' ')).toContain('Whether retention removed only')
    const { items } = await storage.audit.list({ limit: 10, kind: 'checkpoint' })
    expect(items).toHaveLength(1)
    const observer = observe(place)
    await poll(async () => {
      const old = await observer.all('select id from calls where ended_at < ?', Date.now() + 5 * day)
      return old.length === 0 || undefined
    })
    expect((await observer.all('select id from calls')).length).toBe(6)
    expect(await exportAndVerify(audit, place, clockAfter(10))).toMatchObject({ findings: [], keyed: true, chains: 2 })
    await close()

    // Once more, when the first checkpoint itself is too old to be kept.
    const later = await openAfterRetention(place, 30, 5)
    expect((await later.audit.verify(never)).findings).toEqual([])
    await later.close()
  })

  it('stays provable in the middle of letting go, and believes no checkpoint that somebody puts there', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0)
    const { storage, audit, close } = await openRecord(place, { clock: clockAfter(10) })
    const instance = (await storage.record.nextChain('')) ?? ''
    const [last] = await storage.record.entries(instance, 6, 1)
    const before = clockAfter(5).now()
    const removed = { [instance]: { sequence: 7, hash: last?.hash } }
    await storage.audit.mark('checkpoint', { before, removed })
    await storage.remove(storage.record.removal(instance, 4, 7))
    expect((await audit.verify(never)).findings).toEqual([])
    await storage.remove(storage.record.removal(instance, 1, 3))
    expect((await audit.verify(never)).findings).toEqual([])
    expect(await exportAndVerify(audit, place, clockAfter(10))).toMatchObject({ findings: [], keyed: true, chains: 2 })

    const forged = JSON.stringify({ before, removed: { [storage.instance]: { sequence: 1, hash: 'made up' } } })
    const columns = 'instance, sequence, at, kind, principal, subject, body, hash'
    const values = `'${instance}', 7, ${last?.at}, 'checkpoint', 'gateway', 'record', '${forged}', '${last?.hash}'`
    await change(place, `insert into audit (${columns}) values (${values})`)
    expect(kindsOf(await audit.verify(never))).toContain('missing')
    await close()
  })

  it('does not take anything else for the work of retention', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0, 8)
    const { audit, close } = await openAfterRetention(place, 10, 5)
    expect(await audit.verify(never)).toMatchObject({ clean: true })
    const [chain] = await observe(place).all(
      "select instance, min(sequence) as first from audit where kind = 'change' group by instance",
    )
    await change(place, `delete from audit where instance = '${chain?.instance}' and sequence <= ${chain?.first}`)
    expect(kindsOf(await audit.verify(never))).toContain('missing')
    await change(place, "delete from audit where kind = 'checkpoint'")
    expect(kindsOf(await audit.verify(never))).toContain('chain-missing')
    await close()
  })

  it('removes nothing by a clock that is 400 days ahead, says why, and goes on when the clock is right', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0)
    const written = await countEntries(place)
    for (const start of [400, 400.2]) {
      const ahead = await afterFirstPass(await openOn(place, start, { retention: 5 }))
      expect(ahead.audit.retention()).toMatchObject({ days: 5, held: expect.stringContaining('400 days ahead of') })
      expect((await ahead.audit.verify(never)).removals).toEqual([])
      await ahead.close()
    }
    const right = await afterFirstPass(await openOn(place, 0.5, { retention: 5 }))
    expect(right.audit.retention()).toEqual({ days: 5 })
    expect(await countEntries(place)).toBeGreaterThan(written)
    const held = await right.storage.audit.list({ limit: 10, subject: 'retention' })
    expect(held.items.map(({ principal, body }) => [principal, body.action])).toEqual([
      ['gateway', 'held'],
      ['gateway', 'held'],
    ])
    await right.close()
  })

  it('removes again once an administrator has confirmed the clock, and records who did', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0)
    const recording = await afterFirstPass(await openOn(place, 20, { retention: 5 }))
    const { audit, storage } = recording
    expect(audit.retention()).toHaveProperty('held')
    await expect(audit.confirmClock('user:ada', Date.now())).rejects.toMatchObject({ code: 'request-invalid' })
    expect(audit.retention()).toHaveProperty('held')
    await audit.confirmClock('user:ada', clockAfter(20).now())
    await afterFirstPass(recording)
    expect(audit.retention()).toMatchObject({ days: 5, last: { entries: expect.any(Number) } })
    const report = await audit.verify(never)
    expect(report.findings).toEqual([])
    const [checkpoint] = (await storage.audit.list({ limit: 1, kind: 'checkpoint' })).items
    expect(report.removals).toEqual([
      {
        checkpoint: `${checkpoint?.instance}:${checkpoint?.sequence}`,
        at: checkpoint?.at,
        before: new Date(Number(checkpoint?.body.before)).toISOString(),
        entries: checkpoint?.body.entries,
        days: 5,
      },
    ])
    const { items } = await storage.audit.list({ limit: 1, principal: 'user:ada' })
    expect(items[0]).toMatchObject({ subject: 'retention', body: { action: 'clock-confirmed' } })
    await recording.close()
  })

  it('removes at most 31 days in one pass', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0, 20, 40, 60)
    const { audit, storage, close } = await openOn(place, 100, { retention: 5 })
    await audit.confirmClock('user:ada', clockAfter(100).now())
    await audit.verify(never)
    const [oldest] = (await storage.audit.list({ limit: 1000 })).items.toReversed()
    expect(Math.round((Date.parse(oldest?.at ?? '') - Date.now()) / day)).toBe(40)
    await close()
  })

  it('keeps entries that a clock far behind has written, and those before them in their chain', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0, -9000)
    const written = await countEntries(place)
    const recording = await afterFirstPass(await openOn(place, 0.5, { retention: 5 }))
    expect(recording.audit.retention()).toEqual({ days: 5 })
    expect(await countEntries(place)).toBeGreaterThan(written)
    await recording.close()
  })

  it('finds a removal by a clock that was ahead, by the clock that verifies and by later entries', async () => {
    const place = await placeOn(kind)
    await fillOverDays(place, 0)
    const { audit, close } = await openAfterRetention(place, 400, 5)
    expect(kindsOf(await audit.verify(never))).toEqual([])
    await close()
    // A gateway whose clock is that far from the database's would not start.
    if (place.databaseUrl !== undefined) await moveDatabaseClock(place.databaseUrl, 0)
    const right = await openRecord(place)
    const report = await right.audit.verify(never)
    expect(kindsOf(report)).toEqual(['retention-clock'])
    expect(report.findings[0]?.message).toContain('with a wrong clock')
    await right.close()
  })
})

it('gives the room of removed entries back to the disk', async () => {
  const place = await placeOn('SQLite')
  const { storage, close } = await openOn(place, 0)
  const body = { text: 'x'.repeat(50_000) }
  for (let change = 0; change < 200; change++) await storage.audit.append({ principal: 'user:a', subject: 's', body })
  await close()
  const file = join(place.folder, 'sallyport.db')
  const before = statSync(file).size
  expect(before).toBeGreaterThan(10_000_000)
  const recording = await openAfterRetention(place, 40, 30)
  await poll(() => statSync(file).size < before / 4 || undefined)
  expect(await recording.audit.verify(never)).toMatchObject({ clean: true })
  await recording.close()
})

it('removes nothing while the clocks of the gateway and of the database differ', async () => {
  const place = await placeOn('PostgreSQL')
  await fillOverDays(place, 0, 0.5)
  const { audit, close } = await openRecord(place, { settings: { retention: 5 }, clock: clockAfter(1.2) })
  await audit.verify(never)
  expect(audit.retention()).toMatchObject({ held: expect.stringContaining('the clock of the database') })
  await close()
})
