import { describe, expect, it } from 'vitest'
import { databases, placeOn } from '../../storage/support.ts'
import { rounds } from '../../support/rounds.ts'
import {
  approveAndDeny,
  approveAtOnce,
  buildRoad,
  isInOrder,
  joinOver,
  readsBeforeItReturns,
  readsThenAnswers,
  readsThenSpends,
  readsThenUses,
  spendAtOnce,
  type Wrong,
} from './races.ts'
import { codeOf, person } from './stage.ts'

async function several(count: number, wrong?: Wrong) {
  const place = await placeOn('PostgreSQL')
  return Promise.all(Array.from({ length: count }, () => buildRoad(place, wrong)))
}

/** The numbers that matter are for SQLite, and for several gateways on PostgreSQL below. */
describe.each(databases)('on %s', (kind) => {
  const build = async (wrong?: Wrong) => buildRoad(await placeOn(kind), wrong)

  it('hears one of fifty people who approve at once, tells the others so, and runs the call once', async () => {
    const road = await build()
    for (let n = 0; n < 3; n++)
      expect(await approveAtOnce([road], 50, n)).toEqual({ heard: 1, late: 49, outcome: 'answered', ran: 1 })
  })

  it('is told of once, also when the database is read before the instance that wrote the answer goes on', async () => {
    const road = await build(readsBeforeItReturns)
    const told: unknown[] = []
    road.events.on('approval-answered', ({ approval, elsewhere }) => told.push([approval.id, elsewhere]))
    const people = Array.from({ length: 10 }, (_, index) => person(`person-${index}`, 'administrator'))
    const caller = road.hold(1)
    const { id } = await caller.shown
    await Promise.all(people.map((by) => codeOf(road.approvals.answer(by, id, { verdict: 'deny' }))))
    expect(told).toEqual([[id, undefined]])
    expect((await caller.outcome).kind).toBe('refused')
  })

  it('would hear several if it looked first and wrote afterwards', async () => {
    const { heard } = await approveAtOnce([await build(readsThenAnswers)], 50, 1)
    expect(heard).toBeGreaterThan(1)
  })

  it('has one end when one person approves and another denies, and runs the call if and only if it was approved', async () => {
    const ends = await approveAndDeny(await build(), kind === 'SQLite' ? rounds(100, 500) : 50)
    expect(ends.filter((end) => !isInOrder(end))).toEqual([])
    expect(new Set(ends.map(({ state }) => state))).toEqual(new Set(['used', 'denied']))
  })

  it('would have two ends if it looked first and wrote afterwards', async () => {
    const ends = await approveAndDeny(await build(readsThenAnswers), 20)
    expect(ends.filter((end) => !isInOrder(end))).not.toEqual([])
  })

  it('lets exactly ten of many calls run on a grant of ten', async () => {
    const spent = await spendAtOnce([await build()], { calls: kind === 'SQLite' ? 1000 : 200, budget: 10 })
    expect(spent).toEqual({ answered: 10, reached: 10, used: 10 })
  })

  it('would let more run if it looked first and spent afterwards', async () => {
    const { reached } = await spendAtOnce([await build(readsThenSpends)], { calls: 100, budget: 10 })
    expect(reached).toBeGreaterThan(10)
  })

  it('would run equal calls several times if it looked first and used the approval afterwards', async () => {
    const { ran } = await joinOver([await build(readsThenUses)], 20)
    expect(ran).toBeGreaterThan(1)
  })
})

describe('over several gateways on one database', () => {
  it('lets exactly ten of a thousand calls run on a grant of ten', async () => {
    const spent = await spendAtOnce(await several(3), { calls: 1000, budget: 10 })
    expect(spent).toEqual({ answered: 10, reached: 10, used: 10 })
  })

  it('would let more run if it looked first and spent afterwards', async () => {
    const { reached } = await spendAtOnce(await several(3, readsThenSpends), { calls: 100, budget: 10 })
    expect(reached).toBeGreaterThan(10)
  })

  it('hears one of fifty people who approve at once on three gateways, and runs the call once', async () => {
    const roads = await several(3)
    expect(await approveAtOnce(roads, 50, 1)).toEqual({ heard: 1, late: 49, outcome: 'answered', ran: 1 })
  })

  it('runs one of twenty equal calls on two gateways, and gives all of them its outcome', async () => {
    expect(await joinOver(await several(2), 20)).toEqual({ outcomes: new Set(['answered']), ran: 1 })
  })

  it('would run several if it looked first and used the approval afterwards', async () => {
    const { ran } = await joinOver(await several(2, readsThenUses), 20)
    expect(ran).toBeGreaterThan(1)
  })
})
