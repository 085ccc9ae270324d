import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect } from 'vitest'
import { kindsOf, verify } from '../../audit/support.ts'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { temporaryFolder } from '../../storage/support.ts'
import { runToCrash } from '../../support/crash.ts'
import { programPath } from '../../support/programs.ts'

const program = programPath('test/scenarios/approvals/crashing-gateway')

export type CrashStage = { readonly config: string; readonly data: string; readonly record: string }

export function createCrashStage(): CrashStage {
  const folder = temporaryFolder()
  const record = join(folder, 'record.jsonl')
  const config = join(folder, 'sallyport.json')
  const data = join(folder, 'data')
  mkdirSync(data)
  writeFileSync(config, JSON.stringify({ servers: { files: stdioFixture('recording', ['--record', record]) } }))
  return { config, data, record }
}

/** Tells the point at which it was killed, or that it came to its end. */
export async function liveOnce({ config, data }: CrashStage, run: number, crashAt: string): Promise<string> {
  return runToCrash(program, [config, data, String(run)], crashAt)
}

/** Kills one at a point, and lets the next do the same again, as a caller who repeats its calls. */
export async function killAndRepeat(stage: CrashStage, run: number, crashAt: string): Promise<string> {
  const point = await liveOnce(stage, run, crashAt)
  if (existsSync(join(stage.data, 'sallyport.db'))) await expectOrder(stage, `killed at ${crashAt}: ${point}`)
  if (point === 'ended') return point
  expect(await liveOnce(stage, run, 'never')).toBe('ended')
  await expectOrder(stage, `after ${crashAt}: ${point}`)
  expect(open(stage), point).toEqual([])
  return point
}

type Row = Record<string, unknown>

/** What may stand of an approval, by what stands of its call. */
const together: Readonly<Record<string, readonly string[]>> = {
  waiting: ['waiting'],
  approved: ['waiting'],
  used: ['running', 'ok', 'unknown', 'failed'],
  denied: ['denied'],
  expired: ['expired'],
  lapsed: ['expired'],
  withdrawn: ['denied'],
}

/** Whatever happened: no approval and no grant permitted more than it says, nothing is half written, the chain verifies. */
export async function expectOrder(stage: CrashStage, where: string): Promise<void> {
  const received = existsSync(stage.record) ? await readRecord(stage.record) : []
  const approvals = all(
    stage,
    'select q.state, q.arguments, c.state as call from approvals q join calls c on c.id = q.call',
  )
  for (const { state, call } of approvals) expect(together[String(state)], where).toContain(call)
  expect(approvals, where).toHaveLength(count(stage, 'select count(*) as n from approvals'))

  const permitted = all(
    stage,
    `select arguments, decision from calls where decision like 'approved by %' or decision = ?`,
    byGrant,
  )
  for (const part of new Set(received.map(partOf))) {
    const times = received.filter((line) => partOf(line) === part).length
    expect(times, `${where}: ${part}`).toBeLessThanOrEqual(
      permitted.filter((call) => partOf({ arguments: JSON.parse(String(call.arguments)) }) === part).length,
    )
    expect(part, where).not.toMatch(/denied/)
  }
  const used = approvals.filter(({ state }) => state === 'used')
  expect(used, where).toHaveLength(permitted.filter(({ decision }) => decision !== byGrant).length)
  const spent = (tool: string) =>
    count(stage, 'select count(*) as n from calls where tool = ? and decision = ?', tool, byGrant)
  for (const tool of ['files_write_thing', 'files_plain_thing']) {
    const sum = count(stage, 'select coalesce(sum(used), 0) as n from grants where tools = ?', tool)
    expect(sum, where).toBe(spent(tool))
  }
  expect(count(stage, 'select count(*) as n from grants where used > budget'), where).toBe(0)
  const given = count(stage, "select count(*) as n from grants where tools = 'files_write_thing'")
  expect(given, where).toBe(count(stage, 'select count(*) as n from approvals where grant_id is not null'))

  const report = await verify(stage.data)
  expect(kindsOf(report), `${where}: ${JSON.stringify(report.findings)}`).toEqual([])
}

const byGrant = 'allowed by a grant of admin'

/** Which step of which run a call belongs to. */
function partOf({ arguments: given }: { arguments?: Row }): string {
  return `${given?.run} ${given?.part}`
}

/** Calls that have no end although whoever made them has gone, and approvals that nobody waits for any more. */
function open(stage: CrashStage): Row[] {
  return all(
    stage,
    "select id from calls where ended_at is null union select id from approvals where state = 'waiting'",
  )
}

function count(stage: CrashStage, sql: string, ...parameters: unknown[]): number {
  return Number(all(stage, sql, ...parameters)[0]?.n)
}

function all({ data }: CrashStage, sql: string, ...parameters: unknown[]): Row[] {
  const file = new Sqlite(join(data, 'sallyport.db'), { readonly: true })
  try {
    return file.prepare<unknown[], Row>(sql).all(...parameters)
  } finally {
    file.close()
  }
}
