import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect } from 'vitest'
import { readRecord, stdioFixture } from '../fixtures/fixtures.ts'
import { temporaryFolder } from '../storage/support.ts'
import { runToCrash } from '../support/crash.ts'
import { programPath } from '../support/programs.ts'
import { kindsOf, verify } from './support.ts'

const program = programPath('test/audit/crashing-gateway')

export type Stage = { readonly config: string; readonly data: string; readonly record: string; runs: number }

export function createStage(): Stage {
  const folder = temporaryFolder()
  const record = join(folder, 'record.jsonl')
  const config = join(folder, 'sallyport.json')
  const data = join(folder, 'data')
  mkdirSync(data)
  const servers = { files: stdioFixture('recording', ['--record', record]) }
  const rules = [{ tools: 'files_*', action: 'allow' }]
  writeFileSync(config, JSON.stringify({ servers, rules, audit: { retention: 1 } }))
  return { config, data, record, runs: 0 }
}

/** Starts it again on what the last run left; tells the point at which it was killed, or that it came to its end. */
export async function runOnce(stage: Stage, crashAt: string): Promise<string> {
  stage.runs++
  return runToCrash(program, [stage.config, stage.data, String(stage.runs)], crashAt)
}

/** Every run is some days later than the one before, so that retention has something to do. */
export function dateOf(run: number): number {
  return Date.now() + run * 3 * 86_400_000
}

/** Whatever happened: the chain verifies, nothing was sent twice, and no call that an ended gateway began is open. */
export async function expectOrder(stage: Stage, where: string): Promise<void> {
  const received = (await readIfThere(stage.record)).map(({ arguments: given }) => Number(given?.n))
  expect(received, where).toEqual([...new Set(received)])
  if (!hasRecord(stage.data)) return
  const report = await verify(stage.data, [], dateOf(stage.runs))
  expect(kindsOf(report), `${where}: ${JSON.stringify(report.findings)}`).toEqual([])
}

/** After a start that came to its end nobody is open any more. */
export function openCalls(stage: Stage): unknown[] {
  const file = new Sqlite(join(stage.data, 'sallyport.db'), { readonly: true })
  try {
    return file.prepare('select id from calls where ended_at is null').all()
  } finally {
    file.close()
  }
}

async function readIfThere(record: string) {
  return existsSync(record) ? readRecord(record) : []
}

function hasRecord(data: string): boolean {
  if (!existsSync(join(data, 'sallyport.db'))) return false
  const file = new Sqlite(join(data, 'sallyport.db'), { readonly: true })
  try {
    return file.prepare("select 1 from sqlite_master where name = 'audit'").get() !== undefined
  } finally {
    file.close()
  }
}
