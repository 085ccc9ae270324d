import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Sqlite from 'better-sqlite3'
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import type { AuditKind } from '../../src/contract/audit.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { linkEntry, toChainKey } from '../../src/storage/chain.ts'
import type { AuditTable } from '../../src/storage/database.ts'
import { openStorage } from '../../src/storage/storage.ts'
import { callOf, endOf, ids, temporaryFolder } from '../storage/support.ts'
import { copyOf, fill, kindsOf, openRecord, tamper, verify, writeRecord } from './support.ts'

type Row = AuditTable & { kind: AuditKind }

/** Written once: every run changes a copy. */
const original = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
let rows: Row[] = []

beforeAll(async () => {
  await writeRecord(original)
  tamper(original, (file) => {
    rows = file.prepare<[], Row>('select * from audit order by instance, sequence').all()
  })
  return () => rmSync(original, { recursive: true, force: true })
})

it('finds nothing in a record that nobody touched, and says what it looked at and what it cannot see', async () => {
  const report = await verify(copyOf(original))
  expect(report).toMatchObject({ clean: true, keyed: true, found: 0, findings: [], chains: 3, entries: rows.length })
  expect(report.anchors.outside).toBeGreaterThanOrEqual(6)
  expect(report.checked.join(' ')).toContain(`${rows.length} entries in 3 chains`)
  expect(report.unseen.join(' ')).toContain('the last anchor outside')
  expect(report.unseen.join(' ')).toContain('audit.anchors.file')
})

const columns = ['at', 'kind', 'call', 'principal', 'subject', 'body', 'hash'] as const

type Tampering =
  | { kind: 'edit'; row: number; column: (typeof columns)[number]; text: string }
  | { kind: 'delete'; row: number; count: number }
  | { kind: 'swap'; row: number; other: number }
  | { kind: 'insert'; row: number }
  | { kind: 'cut'; row: number }
  | { kind: 'chain'; row: number }
  | { kind: 'renumber'; row: number }

const tampering: fc.Arbitrary<Tampering> = fc.oneof(
  fc.record({
    kind: fc.constant('edit' as const),
    row: fc.nat(),
    column: fc.constantFrom(...columns),
    text: fc.string({ minLength: 1 }),
  }),
  fc.record({ kind: fc.constant('delete' as const), row: fc.nat(), count: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('swap' as const), row: fc.nat(), other: fc.nat() }),
  fc.record({ kind: fc.constant('insert' as const), row: fc.nat() }),
  fc.record({ kind: fc.constant('cut' as const), row: fc.nat() }),
  fc.record({ kind: fc.constant('chain' as const), row: fc.nat() }),
  fc.record({ kind: fc.constant('renumber' as const), row: fc.nat() }),
)

/** Does it, and tells whether anything is different afterwards. */
function apply(file: Sqlite.Database, how: Tampering): boolean {
  const row = rows[how.row % rows.length]
  if (!row) return false
  const { instance, sequence } = row
  const run = (sql: string, ...values: unknown[]) => file.prepare(sql).run(...values).changes > 0
  const at = 'where instance = ? and sequence = ?'
  if (how.kind === 'edit') {
    const value = how.column === 'at' ? Number(row.at) + 1 : how.text
    return value !== row[how.column] && run(`update audit set ${how.column} = ? ${at}`, value, instance, sequence)
  }
  if (how.kind === 'delete') {
    const span = 'where instance = ? and sequence >= ? and sequence < ?'
    return run(`delete from audit ${span}`, instance, sequence, sequence + how.count)
  }
  if (how.kind === 'cut') return run('delete from audit where instance = ? and sequence >= ?', instance, sequence)
  if (how.kind === 'chain') return run('delete from audit where instance = ?', instance)
  if (how.kind === 'insert') {
    run('update audit set sequence = -(sequence + 1) where instance = ? and sequence > ?', instance, sequence)
    run('update audit set sequence = -sequence where sequence < 0')
    return run(
      `insert into audit select instance, sequence + 1, at, kind, call, principal, subject, body, hash from audit ${at}`,
      instance,
      sequence,
    )
  }
  if (how.kind === 'renumber') {
    run(`delete from audit ${at}`, instance, sequence)
    run('update audit set sequence = -(sequence - 1) where instance = ? and sequence > ?', instance, sequence)
    return run('update audit set sequence = -sequence where sequence < 0') || true
  }
  const other = rows[how.other % rows.length]
  if (!other || (other.instance === instance && other.sequence === sequence)) return false
  const move = `update audit set instance = ?, sequence = ? ${at}`
  run(move, 'aside', 1, instance, sequence)
  run(move, instance, sequence, other.instance, other.sequence)
  return run(move, other.instance, other.sequence, 'aside', 1)
}

it('finds any edit, deletion, swap, insertion and cut of any entry, and any missing chain', async () => {
  await fc.assert(
    fc.asyncProperty(tampering, async (how) => {
      const copy = copyOf(original)
      let changed = false
      tamper(copy, (file) => {
        changed = apply(file, how)
      })
      const report = await verify(copy)
      expect(report.clean).toBe(!changed)
      rmSync(copy, { recursive: true, force: true })
    }),
    { numRuns: 100 },
  )
})

it('would let a forged record through if the chain had no key', async () => {
  const copy = copyOf(original)
  const last = rows.findLast(({ kind }) => kind === 'change')
  // What anybody could do: change an entry, and make up the hashes of all that follow as far as no anchor reaches.
  const forge = (key: Buffer) =>
    tamper(copy, (file) => {
      file
        .prepare("update audit set body = '{}' where instance = ? and sequence = ?")
        .run(last?.instance, last?.sequence)
      relink(file, key)
      file.prepare("delete from audit where kind = 'anchor'").run()
      relink(file, key)
    })
  forge(Buffer.alloc(32))
  rmSync(join(copy, 'anchors.jsonl'))
  expect(kindsOf(await verify(copy))).toContain('altered')
  writeFileSync(join(copy, 'audit-key'), Buffer.alloc(32).toString('base64url'))
  expect(kindsOf(await verify(copy))).not.toContain('altered')
})

/** Numbers all entries anew and links them with a key. */
function relink(file: Sqlite.Database, key: Buffer): void {
  const secret = toChainKey(key)
  const entries = file.prepare<[], Row>('select * from audit order by instance, sequence').all()
  file.exec('delete from audit')
  const insert = file.prepare('insert into audit values (?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const heads = new Map<string, { sequence: number; hash: string }>()
  for (const entry of entries) {
    const head = heads.get(entry.instance) ?? { sequence: 0, hash: '' }
    const sequence = head.sequence + 1
    const { instance, at, kind, call, principal, subject, body } = entry
    const hash = linkEntry(secret, head.hash, { ...entry, sequence })
    insert.run(instance, sequence, at, kind, call, principal, subject, body, hash)
    heads.set(instance, { sequence, hash })
  }
}

it('would not miss the last entries if it did not look at the anchors outside', async () => {
  const copy = copyOf(original)
  const last = rows.at(-1)
  const cut = 'delete from audit where instance = ? and sequence > ?'
  tamper(copy, (file) => file.prepare(cut).run(last?.instance, Number(last?.sequence) - 1))
  expect(kindsOf(await verify(copy))).toEqual(['cut'])
  rmSync(join(copy, 'anchors.jsonl'))
  const blind = await verify(copy)
  expect(blind.clean).toBe(true)
  expect(blind.unseen.join(' ')).toContain('There is no anchor outside')
})

it('says how much came after the last anchor outside, because it would not miss that', async () => {
  const copy = copyOf(original)
  const { storage } = await openRecord(copy)
  await fill(storage, 2)
  await storage.close() // without a last anchor, as after a kill
  const before = await verify(copy)
  expect(before.unseen.join(' ')).toMatch(/12 entries came after the last anchor outside/)
  tamper(copy, (file) => {
    file.prepare('delete from audit where instance = ? and sequence > 5').run(storage.instance)
    file.prepare('delete from calls where instance = ?').run(storage.instance)
  })
  const after = await verify(copy)
  expect(after.findings.filter(({ kind }) => kind !== 'no-outcome')).toEqual([])
})

it('misses the rows of calls that have lost their entries, also behind the last anchor', async () => {
  const copy = copyOf(original)
  const { storage } = await openRecord(copy)
  await fill(storage, 1)
  await storage.close()
  tamper(copy, (file) => file.prepare('delete from audit where instance = ? and sequence > 1').run(storage.instance))
  expect(kindsOf(await verify(copy))).toEqual(['not-recorded'])
})

it('does not take a record without a key, or with another one, for proven', async () => {
  const copy = copyOf(original)
  rmSync(join(copy, 'audit-key'))
  expect(await verify(copy)).toMatchObject({ clean: false, keyed: false, findings: [{ kind: 'wrong-key' }] })
  writeFileSync(join(copy, 'audit-key'), Buffer.alloc(32, 7).toString('base64url'))
  expect(kindsOf(await verify(copy))).toContain('wrong-key')
})

it('does not take entries without a hash for older than the chain', async () => {
  const copy = copyOf(original)
  tamper(copy, (file) => file.exec("update audit set hash = ''"))
  expect(kindsOf(await verify(copy))).toContain('unchained')
})

it('knows the entries that really are older than the chain', async () => {
  const folder = temporaryFolder()
  const first = await openStorage({ folder, clock: systemClock, ids, log: silentLog })
  await fill(first, 1)
  await first.close()
  tamper(folder, (file) => file.exec("update audit set hash = ''"))
  const { storage, close } = await openRecord(folder)
  await fill(storage, 1)
  await close()
  const report = await verify(folder)
  expect(report).toMatchObject({ clean: true, findings: [] })
  expect(report.notices.join(' ')).toContain('older than the chain')
})

it('does not believe an anchor that somebody made up', async () => {
  const copy = copyOf(original)
  const file = join(copy, 'anchors.jsonl')
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  const forged = { ...JSON.parse(lines.at(-1) ?? ''), body: '{"heads":{}}' }
  writeFileSync(file, [...lines.slice(0, -1), JSON.stringify(forged), ''].join('\n'))
  expect(kindsOf(await verify(copy))).toEqual(['anchor-forged'])
})

it('takes half a line that a crash left in the file of anchors for what it is', async () => {
  const copy = copyOf(original)
  appendFileSync(join(copy, 'anchors.jsonl'), '{"instance":"inst')
  const report = await verify(copy)
  expect(report).toMatchObject({ clean: true })
  expect(report.notices.join(' ')).toContain('not a complete anchor')
  const { close } = await openRecord(copy)
  await close()
  expect(await verify(copy)).toMatchObject({ clean: true })
})

it('tells a restored backup from a cut, and still says that something is gone', async () => {
  const copy = copyOf(original)
  const backup = copyOf(copy)
  const { storage, close } = await openRecord(copy)
  await fill(storage, 1)
  await close()
  cpSync(join(backup, 'sallyport.db'), join(copy, 'sallyport.db'))
  const silent = await verify(copy)
  expect(kindsOf(silent)).toEqual(['chain-missing'])
  expect(silent.notices.join(' ')).toContain('older backup')
  tamper(copy, (file) => file.exec("insert into memory values ('restored', '2026-11-16T06:00:00Z', 1)"))
  expect(kindsOf(await verify(copy))).toEqual(['chain-missing', 'restored'])
  rmSync(join(copy, 'anchors.jsonl'))
  const whole = await verify(copy)
  expect(whole).toMatchObject({ clean: true })
  expect(whole.notices.join(' ')).toContain('restored from a backup')
})

it('finds a call that ended twice, and one that never did', async () => {
  const folder = temporaryFolder()
  const { storage, close } = await openRecord(folder)
  const first = await storage.claim(callOf('write'))
  storage.finish(first, endOf('ok'))
  await storage.flush()
  // The store itself would not write these: so the row is made to look as if the call were running.
  tamper(folder, (file) => file.exec("update calls set ended_at = null, state = 'running'"))
  storage.finish(first, endOf('failed'))
  const second = await storage.claim(callOf('write'))
  await storage.flush()
  tamper(folder, (file) => file.prepare("update calls set ended_at = 1, state = 'ok' where id = ?").run(second.id))
  await close()
  const report = await verify(folder)
  expect(kindsOf(report)).toEqual(['no-intent', 'no-outcome'])
  expect(report.findings.map(({ call }) => call).sort()).toEqual([first.id, second.id].sort())
})
