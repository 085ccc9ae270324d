import { expect, it } from 'vitest'
import { createCrashStage, killAndRepeat, liveOnce } from '../scenarios/approvals/crashing.ts'
import { followModel } from '../scenarios/approvals/model.ts'
import { approveAndDeny, approveAtOnce, buildRoad, isInOrder } from '../scenarios/approvals/races.ts'
import { databases, placeOn } from '../storage/support.ts'

const points = [
  'before the approval is stored',
  'the approval is stored',
  'before the answer is written',
  'the answer is written',
  'before the claim',
  'after the claim',
  'sent, and not answered',
  'after the answer',
  'before the outcome',
  'the key has its answer',
  'the outcome is queued',
]

it.each(['', 'storage:'])(
  'runs no approval twice, and loses and doubles no grant, wherever it was killed (%s)',
  { timeout: 1_800_000 },
  async (thread) => {
    const stage = createCrashStage()
    expect(await liveOnce(stage, 0, 'never')).toBe('ended') // what happens at a very first start is tried elsewhere
    const seen = new Set<string>()
    for (let n = 1; ; n++) {
      const point = await killAndRepeat(stage, n, `${thread}${n}`)
      if (point === 'ended') break
      seen.add(point)
    }
    if (thread === '') expect([...seen]).toEqual(expect.arrayContaining(points))
  },
)

it('runs what was permitted, as often as it was, in many random orders', async () => {
  const seed = Date.now() & 0x7fffffff
  console.log(`seed ${seed}`)
  await followModel(300, seed)
})

it.each(databases)('has one end in 500 races of an approval with a denial on %s', async (kind) => {
  const ends = await approveAndDeny(await buildRoad(await placeOn(kind)), 500)
  expect(ends.filter((end) => !isInOrder(end))).toEqual([])
})

it('hears one of fifty people over three gateways, two hundred times', async () => {
  const place = await placeOn('PostgreSQL')
  const roads = await Promise.all([1, 2, 3].map(() => buildRoad(place)))
  for (let n = 0; n < 200; n++)
    expect(await approveAtOnce(roads, 50, n)).toEqual({ heard: 1, late: 49, outcome: 'answered', ran: 1 })
})
