import fc from 'fast-check'
import { expect } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { ada, answer, ask, codeOf, createStage, type Gate, held, type Stage } from './stage.ts'

const expiry = 600_000

/** What people would say of it: one approval for each of two calls, a row of grants, and how often something ran. */
type Model = {
  now: number
  ran: number
  readonly calls: [ModelCall, ModelCall]
  /** How every approval that was ever asked must stand. */
  readonly approvals: Map<string, string>
  readonly grants: ModelGrant[]
}
type ModelCall = { id: string; state: 'none' | 'waiting' | 'approved' | 'denied'; endsAt: number; held: Caller[] }
type ModelGrant = { id: string; budget: number; used: number; endsAt: number; revoked: boolean }
type Caller = { outcome: Promise<string>; leave(): void }

type Real = { readonly stage: Stage; gate: Gate; readonly principal: Principal; lines(): Promise<number> }
type Command = fc.AsyncCommand<Model, Real>
type Which = 0 | 1

/** The grant that is spent: the one that ends first. */
function findGrant({ grants, now }: Model): ModelGrant | undefined {
  const usable = grants.filter(({ used, budget, endsAt, revoked }) => !revoked && used < budget && endsAt > now)
  return usable.sort((a, b) => a.endsAt - b.endsAt)[0]
}

/** How a call goes that is made now, and what it changes; `waiting` when a person has to answer. */
function make(model: Model, which: Which): string {
  const call = model.calls[which]
  if (call.state === 'approved') return settle(model, call, 'used', 'answered')
  if (call.state === 'denied') return settle(model, call, 'denied', 'approval-denied')
  const grant = findGrant(model)
  if (grant) {
    grant.used++
    model.ran++
    return 'answered'
  }
  return 'waiting'
}

/** The approval of a call has its end, and whoever asked has heard of it. */
function settle(model: Model, call: ModelCall, state: 'used' | 'denied' | 'expired' | 'lapsed', told: string): string {
  model.approvals.set(call.id, state)
  if (state === 'used') model.ran++
  call.state = 'none'
  return told
}

function noteQuestion(model: Model, which: Which, id: string): void {
  const call = model.calls[which]
  if (call.state === 'waiting') return expect(id).toBe(call.id)
  expect(model.approvals.has(id)).toBe(false)
  Object.assign(call, { id, state: 'waiting', endsAt: model.now + expiry })
  model.approvals.set(id, 'waiting')
}

/** Everyone who was held hears the same. */
async function release(call: ModelCall, told: string): Promise<void> {
  const outcomes = await Promise.all(call.held.splice(0).map(({ outcome }) => outcome))
  expect(outcomes).toEqual(outcomes.map(() => told))
}

/** After every step: as often as the model says it ran, approvals stand as it says, grants are used as it says. */
async function compare(model: Model, { gate, principal, lines }: Real): Promise<void> {
  expect(await lines()).toBe(model.ran)
  const { items } = await gate.gateway.approvals.list(principal, { limit: 200 })
  expect(new Map(items.map(({ id, state }) => [id, state]))).toEqual(model.approvals)
  const grants = await gate.gateway.grants.list(principal, { limit: 200 })
  expect(new Map(grants.items.map(({ id, used }) => [id, used]))).toEqual(
    new Map(model.grants.map(({ id, used }) => [id, used])),
  )
}

function command(name: string, check: (model: Model) => boolean, run: Command['run']): Command {
  return {
    check,
    toString: () => name,
    async run(model, real) {
      await run(model, real)
      await compare(model, real)
    },
  }
}

const always = () => true
const asked = (real: Real, which: Which) => ({ as: real.principal, given: { run: real.principal.name, which } })

const call = (which: Which) =>
  command(`call ${which}`, always, async (model, real) => {
    const expected = make(model, which)
    const outcome = await ask(real.gate, asked(real, which))
    expect(await codeOf(Promise.resolve(outcome))).toBe(expected)
    if (outcome.kind === 'waiting') noteQuestion(model, which, outcome.approval.id)
  })

const hold = (which: Which) =>
  command(
    `hold ${which}`,
    (model) => model.calls[which].held.length < 3,
    async (model, real) => {
      const expected = make(model, which)
      if (expected !== 'waiting') {
        expect(await codeOf(ask(real.gate, { ...asked(real, which), hold() {} }))).toBe(expected)
        return
      }
      const leaving = new AbortController()
      const { outcome, approval } = await held(real.gate, { ...asked(real, which), signal: leaving.signal })
      noteQuestion(model, which, approval.id)
      model.calls[which].held.push({ outcome: codeOf(outcome), leave: () => leaving.abort() })
    },
  )

const leave = (which: Which) =>
  command(
    `leave ${which}`,
    (model) => model.calls[which].held.length > 0,
    async (model) => {
      for (const caller of model.calls[which].held) caller.leave()
      await release(model.calls[which], 'call-cancelled')
    },
  )

const say = (which: Which, verdict: 'approve' | 'deny') =>
  command(
    `${verdict} ${which}`,
    (model) => model.calls[which].id !== '',
    async (model, real) => {
      const current = model.calls[which]
      const code = await codeOf(answer(real.gate, ada, current, verdict))
      if (current.state !== 'waiting') return expect(code).toBe('approval-answered')
      expect(code).toBe('done')
      current.state = verdict === 'approve' ? 'approved' : 'denied'
      model.approvals.set(current.id, current.state)
      // Those who stayed go on at once: one of them runs it, all of them hear.
      if (current.held.length > 0) await release(current, make(model, which))
    },
  )

const give = (budget: number, minutes: number) =>
  command(
    `give ${budget} for ${minutes} minutes`,
    (model) => model.grants.length < 5,
    async (model, real) => {
      const endsAt = model.now + minutes * 60_000 + model.grants.length // no two end at once
      const { id } = await real.gate.gateway.grants.add(ada, {
        tools: 'files_write_*',
        principal: `agent:${real.principal.name}`,
        budget,
        expiresAt: new Date(endsAt).toISOString(),
      })
      model.grants.push({ id, budget, used: 0, endsAt, revoked: false })
    },
  )

const revoke = command(
  'revoke',
  (model) => model.grants.some(({ revoked }) => !revoked),
  async (model, real) => {
    const grant = model.grants.find(({ revoked }) => !revoked)
    if (!grant) return
    await real.gate.gateway.grants.revoke(ada, grant.id)
    grant.revoked = true
  },
)

const pass = (minutes: number) =>
  command(`${minutes} minutes pass`, always, async (model, real) => {
    model.now += minutes * 60_000
    real.stage.time.now = model.now
    // Somebody else asks: whoever asks looks whose time is up.
    const poke: Principal = { kind: 'agent', name: `poke-${model.now}` }
    await ask(real.gate, { as: poke, tool: 'plain_thing', given: {} })
    for (const each of model.calls) {
      if ((each.state !== 'waiting' && each.state !== 'approved') || each.endsAt > model.now) continue
      settle(model, each, each.state === 'approved' ? 'lapsed' : 'expired', 'approval-expired')
      await release(each, 'approval-expired')
    }
    await untilExpired(model, real)
  })

/** It is looked at right after the answer to whoever asked. */
async function untilExpired(model: Model, { gate, principal }: Real): Promise<void> {
  await expect
    .poll(async () => {
      const { items } = await gate.gateway.approvals.list(principal, { limit: 200 })
      return items.filter(({ state }) => state === 'expired' || state === 'lapsed').length
    })
    .toBe([...model.approvals.values()].filter((state) => state === 'expired' || state === 'lapsed').length)
}

const restart = command('restart', always, async (model, real) => {
  await real.gate.close()
  for (const each of model.calls) await release(each, 'waiting')
  real.gate = await real.stage.open('first', { graceMs: 0 })
})

const steps = fc.commands(
  [
    ...([0, 1] as const).flatMap((which) => [
      fc.constant(call(which)),
      fc.constant(hold(which)),
      fc.constant(leave(which)),
      fc.constant(say(which, 'approve')),
      fc.constant(say(which, 'deny')),
    ]),
    fc.tuple(fc.integer({ min: 1, max: 3 }), fc.constantFrom(4, 30)).map(([budget, minutes]) => give(budget, minutes)),
    fc.constant(revoke),
    fc.constantFrom(pass(5), pass(10)),
    fc.constant(restart),
  ],
  { maxCommands: 40, size: '+1' },
)

/** Runs of random steps against one gateway, each as an agent of its own; a failure prints the seed and the steps. */
export async function followModel(numRuns: number, seed?: number): Promise<void> {
  const stage = await createStage('SQLite')
  const real = { stage, gate: await stage.open('first', { graceMs: 0 }) }
  let runs = 0
  await fc.assert(
    fc.asyncProperty(steps, async (commands) => {
      const name = `run-${++runs}`
      const lines = async () => (await stage.lines()).filter((line) => line.arguments?.run === name).length
      const principal: Principal = { kind: 'agent', name }
      const fresh = (): ModelCall => ({ id: '', state: 'none', endsAt: 0, held: [] })
      const model: Model = {
        now: stage.time.now,
        ran: 0,
        calls: [fresh(), fresh()],
        approvals: new Map(),
        grants: [],
      }
      const mine: Real = { stage, gate: real.gate, principal, lines }
      try {
        await fc.asyncModelRun(() => ({ model, real: mine }), commands)
      } finally {
        real.gate = mine.gate
        for (const each of model.calls) for (const caller of each.held) caller.leave()
      }
    }),
    { numRuns, ...(seed !== undefined && { seed }) },
  )
  expect(await real.gate.gateway.audit.verify(AbortSignal.timeout(60_000))).toMatchObject({ clean: true })
}
