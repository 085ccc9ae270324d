/** Measures a gateway during faults, with real processes on loopback. It only reports figures, without goals. */
import { measureChanges, measurePause, measureSilentDatabase } from './database.ts'
import { measureEndlessLine, measureUnreadAnswers } from './memory.ts'
import type { Row } from './row.ts'

const mostMs = 120_000
const measures = { measureSilentDatabase, measureChanges, measurePause, measureEndlessLine, measureUnreadAnswers }

const rows: Row[] = []
for (const [name, measure] of Object.entries(measures)) {
  const limit = Promise.withResolvers<Row[]>()
  const timer = setTimeout(() => limit.resolve([[name, `no result within ${mostMs / 1000} s`]]), mostMs)
  const failed = (error: unknown): Row[] => [[name, `failed: ${String(error)}`]]
  rows.push(...(await Promise.race([measure().catch(failed), limit.promise])))
  clearTimeout(timer)
}
const width = Math.max(...rows.map(([what]) => what.length))
for (const [what, figure] of rows) console.log(`${what.padEnd(width)}  ${figure}`)
process.exit(0)
