import { expect, it } from 'vitest'
import { createStage, expectOrder, openCalls, runOnce, type Stage } from '../audit/crashing.ts'

/** Kills at the first point, then at the second, until a run comes to its end; each run begins with what the last one left. */
async function killAtEveryPoint(stage: Stage, thread: string, mostPoints = 200): Promise<string[]> {
  const points: string[] = []
  for (let n = 1; n <= mostPoints; n++) {
    const point = await runOnce(stage, `${thread}${n}`)
    await expectOrder(stage, `${thread}${n}: ${point}`)
    if (point === 'ended') return points
    points.push(point)
  }
  throw new Error(`There is no end after ${mostPoints} points`)
}

const limit = { timeout: 1_800_000 }

it('has one end for every call and a record that verifies, wherever on its road it was killed', limit, async () => {
  const stage = createStage()
  const points = new Set(await killAtEveryPoint(stage, ''))
  expect([...points]).toEqual(
    expect.arrayContaining([
      'before the claim',
      'after the claim',
      'sent, and not answered',
      'after the answer',
      'before the outcome',
      'the outcome is queued',
      'an anchor is written, not delivered',
      'a checkpoint is written, nothing is removed',
      'some old entries are removed',
    ]),
  )
  expect(openCalls(stage)).toEqual([])
})

it('has one end for every call and a record that verifies, wherever in the store it was killed', limit, async () => {
  const stage = createStage()
  const points = await killAtEveryPoint(stage, 'storage:')
  expect(points.length).toBeGreaterThan(10)
  expect(openCalls(stage)).toEqual([])
})

it('begins anew when it was killed in the middle of a migration', limit, async () => {
  for (let n = 1; ; n++) {
    const stage = createStage()
    const point = await runOnce(stage, `storage:${n}`)
    await expectOrder(stage, point)
    expect(await runOnce(stage, 'never')).toBe('ended')
    await expectOrder(stage, point)
    if (!point.startsWith('migration')) return
  }
})
