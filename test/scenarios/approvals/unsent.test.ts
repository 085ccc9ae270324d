import { describe, expect, it } from 'vitest'
import { type DatabaseKind, databases, placeOn } from '../../storage/support.ts'
import { runToCrash } from '../../support/crash.ts'
import { poll } from '../../support/gateway.ts'
import { programPath } from '../../support/programs.ts'
import { type Listener, startListener } from '../teams/support.ts'
import { buildRoad, type Road, releasesWhatFailed, type Wrong } from './races.ts'
import {
  ada,
  answer,
  ask,
  codeOf,
  connected,
  entriesOf,
  held,
  openOn,
  person,
  requestApproval,
  stateOf,
  textOf,
} from './stage.ts'
import { createUnsentStage } from './unsent.ts'

const tools = [{ name: 'write_thing', inputSchema: { type: 'object' } }]

async function openWith(kind: DatabaseKind, url: string) {
  return openOn(kind, { servers: { files: { transport: 'http', url } } })
}

describe.each(databases)('on %s', (kind) => {
  it('leaves the approval of a call that certainly was not sent unused, and runs the same call by it, once', async () => {
    await using listener = await startListener(() => tools)
    const gate = await openWith(kind, listener.url)
    const approval = await requestApproval(gate)
    await answer(gate, ada, approval)
    const told: string[] = []
    for (const name of ['call-waiting', 'call-ended'] as const) {
      gate.gateway.events.on(name, ({ call }) => void told.push(`${name} ${call.id}`))
    }
    await listener.pause()
    expect(await ask(gate)).toMatchObject({
      kind: 'refused',
      call: { id: approval.call, state: 'waiting' },
      error: { message: expect.stringContaining('the approval is still valid'), details: { approval: approval.id } },
    })
    expect(told).toEqual([`call-waiting ${approval.call}`])
    expect(await stateOf(gate, approval)).toBe('approved')
    expect(await gate.gateway.calls.find(approval.call)).toMatchObject({ state: 'waiting' })

    await listener.resume()
    await connected(gate.gateway)
    const again = await ask(gate)
    expect(textOf(again)).toBe('peeked')
    expect(again.call.id).toBe(approval.call)
    expect(await stateOf(gate, approval)).toBe('used')
    expect((await requestApproval(gate)).id).not.toBe(approval.id)
    expect(listener.calls()).toBe(1)
    const entries = ['approval', 'answer', 'intent', 'outcome', 'intent', 'outcome']
    expect(await entriesOf(gate, approval.call)).toEqual(entries)
    expect(await gate.gateway.audit.verify(AbortSignal.timeout(20_000))).toMatchObject({ clean: true })
  })

  it('keeps it through a restart, and lets it lapse when nobody comes back for it', async () => {
    await using listener = await startListener(() => tools)
    const gate = await openWith(kind, listener.url)
    const approval = await requestApproval(gate)
    await answer(gate, ada, approval)
    await listener.pause()
    await ask(gate)
    await gate.close()
    await listener.resume()
    const next = await gate.open()
    expect(await stateOf(next, approval)).toBe('approved')
    gate.time.now = Date.parse(approval.expiresAt)
    expect((await requestApproval(next)).id).not.toBe(approval.id)
    expect(await stateOf(next, approval)).toBe('lapsed')
    expect(await next.gateway.calls.find(approval.call)).toMatchObject({ state: 'expired' })
    expect(listener.calls()).toBe(0)
  })

  it('keeps the approval of a call that is held while its server is away', async () => {
    await using listener = await startListener(() => tools)
    const gate = await openWith(kind, listener.url)
    const { outcome, approval } = await held(gate)
    await gate.gateway.servers.enable(ada, 'files', false)
    await answer(gate, ada, approval)
    expect(await outcome).toMatchObject({
      kind: 'refused',
      error: { code: 'server-unavailable', message: expect.stringContaining('the approval is still valid') },
    })
    expect(await stateOf(gate, approval)).toBe('approved')
    await gate.gateway.servers.enable(ada, 'files', true)
    await connected(gate.gateway)
    expect(textOf(await ask(gate))).toBe('peeked')
    expect(listener.calls()).toBe(1)
  })

  it('uses the approval of a call that may have arrived, and asks anew', async () => {
    await using listener = await startListener(() => tools)
    const place = await placeOn(kind)
    expect(await repeatAfterLoss(listener, await buildRoad(place, undefined, listener.url))).toEqual({
      codes: ['call-unknown', 'waiting'],
      calls: 1,
    })
  })

  it('would run it twice if whatever has no answer counted as not sent', async () => {
    await using listener = await startListener(() => tools)
    const { calls } = await repeatAfterLoss(
      listener,
      await buildRoad(await placeOn(kind), releasesWhatFailed, listener.url),
    )
    expect(calls).toBe(2)
  })

  it('runs one of many equal calls that wait while the server comes and goes', async () => {
    await using listener = await startListener(() => tools)
    const roads = await several(kind, listener.url)
    const callers = Array.from({ length: 12 }, (_, index) => roads[index % roads.length]?.hold(7))
    const shown = await Promise.all(callers.map((caller) => caller?.shown))
    await listener.pause()
    const id = shown[0]?.id ?? ''
    await roads.at(-1)?.approvals.answer(person('ada', 'administrator'), id, { verdict: 'approve' })
    const some = Promise.race(callers.map((caller) => caller?.outcome))
    await some
    await listener.resume()
    await Promise.all(callers.map((caller) => codeOf(caller?.outcome ?? Promise.resolve())))
    const found = await poll(async () => {
      await Promise.all(roads.map((road) => codeOf(road.call(7))))
      return listener.calls() > 0 || undefined
    })
    expect(found).toBe(true)
    await Promise.all(roads.map((road) => codeOf(road.call(7))))
    expect(listener.calls()).toBe(1)
  })
})

async function several(kind: DatabaseKind, url: string, wrong?: Wrong): Promise<Road[]> {
  const place = await placeOn(kind)
  const count = kind === 'SQLite' ? 1 : 2
  return Promise.all(Array.from({ length: count }, () => buildRoad(place, wrong, url)))
}

/** An approved call gets no answer, and is made again; tells what the two heard, and how often it reached the server. */
async function repeatAfterLoss(listener: Listener, road: Road) {
  const asked = await road.call(1)
  if (asked.kind !== 'waiting') throw new Error('It was not asked')
  await road.approvals.answer(person('ada', 'administrator'), asked.approval.id, { verdict: 'approve' })
  await listener.resume('silent')
  const first = await codeOf(road.call(1))
  await listener.resume()
  const second = await poll(async () => {
    const code = await codeOf(road.call(1))
    return code === 'tool-not-found' ? undefined : code
  })
  return { codes: [first, second], calls: listener.calls() }
}

const program = programPath('test/scenarios/approvals/unsent-gateway')

/** Killed before the outcome is written, nobody can say what happened: then a person is asked again. */
const uncertain = ['sent, and not answered', 'before the outcome']

it.each(['9', '10', '11'])(
  'runs no approval twice when it is killed around a call that was not sent: point %s',
  { timeout: 120_000 },
  async (number) => {
    await using stage = await createUnsentStage(tools)
    const point = await runToCrash(program, stage.args, number)
    expect(point).not.toBe('ended')
    await stage.listener.resume()
    expect(await runToCrash(program, stage.args, 'never')).toBe('ended')
    expect(stage.listener.calls()).toBe(1)
    const times = uncertain.includes(point) ? 2 : 1
    expect(stage.count(), point).toEqual({ requested: times, used: times })
  },
)
