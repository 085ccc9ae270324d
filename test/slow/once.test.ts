import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { createStage, expectOrder, type Stage } from '../audit/crashing.ts'
import { readRecord } from '../fixtures/fixtures.ts'
import { programPath } from '../support/programs.ts'

const program = programPath('test/calls/once-process')

/** One call with the n-th key; tells how it went, or the point at which the gateway was killed. */
async function run(stage: Stage, n: number, crashAt: string): Promise<{ told: string; killedAt?: string }> {
  const child = spawn(process.execPath, [program, stage.config, stage.data, String(n)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SALLYPORT_CRASH_AT: crashAt },
  })
  let [told, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    told += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const [code]: (number | null)[] = await once(child, 'close')
  if (code === 0) return { told }
  const killedAt = /crash point \d+: (.*)/.exec(errors)?.[1]
  if (killedAt === undefined) throw new Error(`It ended with ${code}: ${errors}`)
  return { told: 'killed', killedAt }
}

async function timesRun({ record }: Stage, n: number): Promise<number> {
  const lines = existsSync(record) ? await readRecord(record) : []
  return lines.filter((line) => line.arguments?.n === n).length
}

/** What a repeat may say, by how often the call ran before it. */
const honest: Readonly<Record<number, readonly string[]>> = {
  0: ['run', 'call-unknown'],
  1: ['replayed', 'call-unknown'],
}

it.each(['', 'storage:'])(
  'runs a call with a key once and never loses it without saying so, wherever it was killed (%s)',
  { timeout: 1_800_000 },
  async (thread) => {
    const stage = createStage()
    await run(stage, 0, 'never') // what happens at a very first start is tried elsewhere
    const seen = new Set<string>()
    for (let n = 1; ; n++) {
      const first = await run(stage, n, `${thread}${n}`)
      const before = await timesRun(stage, n)
      const where = `${thread}${n}: ${first.killedAt}`
      if (first.killedAt === undefined) break
      seen.add(first.killedAt)
      const { told } = await run(stage, n, 'never')
      expect(honest[before], where).toContain(told)
      expect(await timesRun(stage, n), where).toBe(told === 'run' ? 1 : before)
      await expectOrder(stage, where)
      if (first.killedAt === 'before the claim') expect(told).toBe('run')
      if (first.killedAt === 'the key has its answer') expect(told).toBe('replayed')
    }
    if (thread === '') {
      expect([...seen]).toEqual(
        expect.arrayContaining([
          'before the claim',
          'after the claim',
          'sent, and not answered',
          'the key has its answer',
        ]),
      )
    }
  },
)
