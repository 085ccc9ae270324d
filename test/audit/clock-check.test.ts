import { expect, it } from 'vitest'
import { type ClockRecord, judgeClock } from '../../src/audit/clock-check.ts'

const hour = 3_600_000
const day = 24 * hour
const start = Date.parse('2026-11-16T00:00:00Z')
const known: ClockRecord = { confirmed: start, behind: {} }
const read = (record: ClockRecord, now: number, ranMs: number) => judgeClock(record, { now, ranMs, instance: 'a' })

it.each([
  ['an hour later', hour, true],
  ['a day later', day, true],
  ['a little more than a day later', day + 1, false],
  ['400 days later', 400 * day, false],
  ['an hour earlier', -hour, true],
  ['in 1970', -start, false],
])('believes a clock that shows %s: %s ms, %s', (_, later, believed) => {
  const { record, doubt } = read(known, start + later, hour)
  expect(doubt === undefined).toBe(believed)
  expect(record.confirmed).toBe(believed ? Math.max(start, start + later) : start)
})

/** Reads the clock each hour of a run, as the gateway does. */
function run(record: ClockRecord, from: number, hours: number) {
  let known = record
  let accepted = 0
  for (let passed = 0; passed <= hours; passed++) {
    const judgement = read(known, from + passed * hour, passed === 0 ? 0 : hour)
    if (judgement.accepted) accepted++
    known = judgement.record
  }
  return { known, accepted }
}

it('believes a clock in doubt after gateways have run with it for three days', () => {
  expect(run(known, start + 20 * day, 71)).toMatchObject({ known: { confirmed: start }, accepted: 0 })
  const { known: after, accepted } = run(known, start + 20 * day, 72)
  expect(accepted).toBe(1)
  expect(after).toEqual({ confirmed: start + 23 * day, behind: {} })
})

it('counts only hours that a gateway ran: restarts and a weekend neither help nor hurt', () => {
  let record: ClockRecord = known
  for (let workday = 0; workday < 9; workday++) {
    expect(record.confirmed).toBe(start)
    const weekend = workday >= 4 ? 2 : 0
    record = run(record, start + (20 + workday + weekend) * day, 8).known
  }
  expect(record.confirmed).toBeGreaterThan(start)
  const often = Array.from({ length: 500 }).reduce<ClockRecord>(
    (last, _, index) => read(last, start + 20 * day + index, 0).record,
    known,
  )
  expect(often.confirmed).toBe(start)
})

it('begins the three days again when the clock jumps once more, and forgets them when the clock is right', () => {
  const { known: tried } = run(known, start + 20 * day, 70)
  expect(read(tried, start + 400 * day, hour).record.trial).toEqual({ seen: start + 400 * day, ranMs: 0 })
  expect(read(tried, start + 20 * day + 71 * hour, hour).record.trial).toMatchObject({ ranMs: 71 * hour })
  expect(read(tried, start + hour, hour).record).toEqual({ confirmed: start + hour, behind: {} })
})

it('remembers which instance wrote by a clock that was behind', () => {
  expect(read(known, 0, hour).record.behind).toEqual({ a: start })
})
