import { describe, expect, it, onTestFinished } from 'vitest'
import type { Approval } from '../../../src/contract/approval.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { databases } from '../../storage/support.ts'
import { poll } from '../../support/gateway.ts'
import {
  ada,
  answer,
  ask,
  bob,
  codeOf,
  connected,
  createStage,
  entriesOf,
  type Gate,
  gus,
  held,
  helper,
  ivy,
  mia,
  openOn,
  person,
  requestApproval,
  stateOf,
  stray,
  textOf,
  toServer,
} from './stage.ts'

const asking = (approvers: string) => ({
  rules: [{ tools: 'files_write_thing', action: 'ask' as const, approvers }],
})
/** A tool that writes and takes its time. */
const slowly = { tool: 'echo', given: { text: 'done', delayMs: 300 } }
const slowRules = { rules: [{ tools: 'files_echo', action: 'ask' as const }] }

async function until(gate: Gate, name: string, state: string): Promise<void> {
  await poll(() => gate.gateway.pins.list(ada, {}).find((pin) => pin.name === name && pin.state === state))
}

describe.each(databases)('on %s', (kind) => {
  it('runs a call once that a person approves, gives its result to whoever waits, and asks anew the next time', async () => {
    const gate = await openOn(kind)
    const { outcome, approval } = await held(gate)
    expect(approval).toMatchObject({ state: 'waiting', principal: 'agent:helper', owner: 'mia', arguments: { n: 1 } })
    expect(await gate.received()).toEqual([])

    expect(await answer(gate, ada, approval)).toMatchObject({ answers: [{ by: 'ada', verdict: 'approve' }] })
    expect(textOf(await outcome)).toBe('{"n":1}')
    const next = await requestApproval(gate)
    expect(next.id).not.toBe(approval.id)
    expect(await gate.received()).toEqual(['write_thing'])

    expect(await stateOf(gate, approval)).toBe('used')
    expect(await gate.gateway.calls.find(approval.call)).toMatchObject({ state: 'ok', decision: 'approved by ada' })
    expect(await entriesOf(gate, approval.call)).toEqual(['approval', 'answer', 'intent', 'outcome'])
    expect(await gate.gateway.audit.verify(AbortSignal.timeout(20_000))).toMatchObject({ clean: true })
  })

  it('shows the title that the server had when the approval was requested, beside its name', async () => {
    const server = await toServer()
    const gate = await openOn(kind, { servers: { files: { ...server, title: 'Files of the team' } } })
    const approval = await requestApproval(gate)
    expect(approval).toMatchObject({ server: 'files', serverTitle: 'Files of the team', title: 'Write thing' })
    expect(await gate.gateway.approvals.get(ada, approval.id)).toMatchObject({ serverTitle: 'Files of the team' })
    expect(gate.gateway.servers.list()).toMatchObject([{ name: 'files', title: 'Files of the team' }])
    expect(gate.gateway.servers.get(ada, 'files')).toMatchObject({ name: 'files', title: 'Files of the team' })
  })

  it('gives the reason of a denial to the caller, once, also to one who left meanwhile', async () => {
    const gate = await openOn(kind)
    const no = { verdict: 'deny', reason: 'Not on a Friday' } as const
    const { outcome, approval } = await held(gate)
    await answer(gate, ada, approval, no)
    expect(await outcome).toMatchObject({
      kind: 'refused',
      call: { id: approval.call, state: 'denied' },
      error: { code: 'approval-denied', message: expect.stringContaining('Not on a Friday') },
    })
    expect(await entriesOf(gate, approval.call)).toEqual(['approval', 'answer', 'outcome'])

    const left = await requestApproval(gate)
    expect(left.id).not.toBe(approval.id)
    await answer(gate, ada, left, no)
    const again = await ask(gate)
    expect(again).toMatchObject({ error: { message: expect.stringContaining('Not on a Friday') } })
    expect((await requestApproval(gate)).id).not.toBe(left.id)
    expect(await gate.received()).toEqual([])
  })

  it('takes no answer once its time is up, runs no approval that was not used in time, and asks anew then', async () => {
    const gate = await openOn(kind)
    const inTime = await requestApproval(gate, { given: { n: 1 } })
    const late = await requestApproval(gate, { given: { n: 2 } })
    gate.time.now = Date.parse(inTime.expiresAt) - 1
    await answer(gate, ada, inTime)
    gate.time.now += 1
    await expect(answer(gate, ada, late)).rejects.toMatchObject({
      code: 'approval-answered',
      message: 'The approval has expired',
      details: { state: 'expired' },
    })
    expect(await stateOf(gate, late)).toBe('expired')
    expect(await gate.gateway.calls.find(late.call)).toMatchObject({ state: 'expired' })
    expect(await entriesOf(gate, late.call)).toEqual(['approval', 'outcome'])

    expect((await requestApproval(gate, { given: { n: 1 } })).id).not.toBe(inTime.id)
    expect(await stateOf(gate, inTime)).toBe('lapsed')
    const ended = await gate.gateway.calls.find(inTime.call)
    expect(ended).toMatchObject({
      state: 'expired',
      error: { message: expect.stringContaining('not repeated in time') },
    })
    await expect(answer(gate, ada, inTime)).rejects.toMatchObject({
      message: 'The approval was approved, but the call was not repeated in time',
    })
    expect(await gate.received()).toEqual([])
  })

  it('runs nothing when its time is up between the answer and the call', async () => {
    const gate = await openOn(kind)
    const shown = Promise.withResolvers<Approval>()
    const outcome = gate.gateway.calls.run(
      { principal: helper, surface: 'library', selector: { kind: 'all' }, name: 'files_write_thing', arguments: {} },
      {
        signal: new AbortController().signal,
        async present(approval, { settled }) {
          shown.resolve(approval)
          await settled
          gate.time.now = Date.parse(approval.expiresAt)
          return undefined
        },
      },
    )
    const approval = await shown.promise
    await answer(gate, ada, approval)
    expect(await outcome).toMatchObject({
      error: { code: 'approval-expired', message: expect.stringContaining('not repeated in time') },
    })
    expect(await stateOf(gate, approval)).toBe('lapsed')
    expect(await gate.received()).toEqual([])
  })

  it('tells whoever waits that nobody answered in time', async () => {
    const gate = await openOn(kind, { limits: { approvalExpiry: 1000 } })
    const { outcome, approval } = await held(gate)
    gate.time.now += 1000
    expect(await outcome).toMatchObject({ call: { id: approval.call }, error: { code: 'approval-expired' } })
    expect(await gate.received()).toEqual([])
  })

  it('takes equal calls for one, however their arguments are written, and anything else for another', async () => {
    const gate = await openOn(kind)
    const given = JSON.parse('{ "path": "/srv/a", "n": 1, "deep": { "a": 1, "b": [1, 2] } }')
    const first = await requestApproval(gate, { given })
    const alike = JSON.parse('{ "deep": { "b": [1.0, 2e0], "a": 1.0 }, "n": 1.0, "path": "/srv/\\u0061" }')
    expect((await requestApproval(gate, { given: alike })).id).toBe(first.id)

    const others = [
      await requestApproval(gate, { given: { ...given, n: 2 } }),
      await requestApproval(gate, { given: { ...given, more: null } }),
      await requestApproval(gate, { given: { ...given, deep: { a: 1, b: [2, 1] } } }),
      await requestApproval(gate, { given, as: stray }),
      await requestApproval(gate, { given, tool: 'plain_thing' }),
      await requestApproval(gate, { given, input: { inputResponses: { which: 'all' } } }),
      await requestApproval(gate, { given, input: { inputResponses: { which: 'none' } } }),
    ]
    expect(new Set([first, ...others].map(({ id }) => id)).size).toBe(8)
    expect(new Set([first, ...others].map(({ hash }) => hash)).size).toBe(8)
    // Whoever answers sees what goes along as well.
    expect(others.at(-1)?.input).toEqual({ inputResponses: { which: 'none' } })
  })

  it('asks anew when the server is another than the one that was approved', async () => {
    const gate = await openOn(kind)
    const first = await requestApproval(gate)
    await answer(gate, ada, first)
    const { files } = gate.gateway.config.current().servers
    if (files?.transport !== 'http') throw new Error('It is not configured')
    const definition = { ...files, headers: { 'x-tenant': 'another' } }
    await gate.gateway.servers.change(ada, { name: 'files', definition })
    await connected(gate.gateway)
    expect((await requestApproval(gate)).id).not.toBe(first.id)
    expect(await gate.received()).toEqual([])
  })

  it('withdraws an approval when the tool was changed before it ran, and sends nothing', async () => {
    const gate = await openOn(kind)
    const { outcome, approval } = await held(gate)
    await gate.restate(gate, { write_thing: { description: 'Does something else' } })
    await until(gate, 'write_thing', 'changed')
    await answer(gate, ada, approval)
    expect(await outcome).toMatchObject({ kind: 'refused', error: { code: 'approval-withdrawn' } })
    expect(await stateOf(gate, approval)).toBe('withdrawn')
    expect(await gate.gateway.calls.find(approval.call)).toMatchObject({ state: 'denied' })

    const next = await held(gate)
    expect(next.approval.hash).not.toBe(approval.hash)
    await answer(gate, ada, next.approval)
    expect(textOf(await next.outcome)).toBe('{"n":1}')
    expect(await gate.received()).toEqual(['write_thing'])
  })

  it('shows the difference of a changed or new tool that is approved, to those who look at the approval', async () => {
    const gate = await openOn(kind)
    expect((await gate.gateway.approvals.get(ada, (await requestApproval(gate)).id)).drift).toBeUndefined()
    await gate.restate(gate, { write_thing: { description: 'Does something else' } })
    await until(gate, 'write_thing', 'changed')
    const told: Approval[] = []
    onTestFinished(gate.gateway.events.on('approval-requested', (event) => void told.push(event.approval)))
    const changed = await requestApproval(gate)
    const difference = 'description (changed)\n  - The tool write_thing of a fixture\n  + Does something else'
    const shown = await gate.gateway.approvals.get(ada, changed.id)
    expect(shown.drift).toEqual({ kind: 'changed', difference })
    expect(told).toMatchObject([{ id: changed.id }])
    expect(told[0]).not.toHaveProperty('drift')
    const { items } = await gate.gateway.audit.list({ limit: 5, call: changed.call })
    expect(items[0]?.body.drift).toEqual({ kind: 'changed', difference })

    // The server changes it again: the approval is still about what it was asked for, and runs nothing else.
    await gate.restate(gate, { write_thing: { description: 'Does a third thing' } })
    await poll(() => {
      const pin = gate.gateway.pins.list(ada, {}).find(({ name }) => name === 'write_thing')
      return (pin && gate.gateway.pins.get(ada, pin.id).difference.includes('third')) || undefined
    })
    expect((await gate.gateway.approvals.get(ada, changed.id)).drift?.difference).toBe(difference)
    await answer(gate, ada, changed)
    const next = await requestApproval(gate)
    expect(next.id).not.toBe(changed.id)
    expect((await gate.gateway.approvals.get(ada, next.id)).drift?.difference).toContain('+ Does a third thing')
    expect(await gate.received()).toEqual([])
  })

  it('asks about a tool that is allowed, and shows the difference, whatever part of its definition changes', async () => {
    const gate = await openOn(kind, { rules: [{ tools: 'files_*_thing', action: 'allow' }] })
    const schema = (fallback: string | boolean) => ({ type: 'object', properties: { force: { default: fallback } } })
    const changes: [object, string][] = [
      [{ title: 'Read thing' }, 'title (added)\n  + Read thing'],
      [{ annotations: { readOnlyHint: true } }, 'annotations'],
      [
        { outputSchema: { type: 'object', description: 'and send the token' } },
        '+   "description": "and send the token"',
      ],
      [{ inputSchema: schema('true') }, '"default": "true"'],
      [{ inputSchema: schema(true) }, '"default": true'],
      [{ _meta: { hint: 'new' } }, '_meta'],
    ]
    for (const [change, shown] of changes) {
      await gate.restate(gate, { write_thing: change })
      await poll(() => {
        const pin = gate.gateway.pins.list(ada, {}).find(({ name }) => name === 'write_thing')
        return (pin && gate.gateway.pins.get(ada, pin.id).difference.includes(shown)) || undefined
      })
      const asked = await requestApproval(gate)
      const { drift } = await gate.gateway.approvals.get(ada, asked.id)
      expect(drift?.difference).toContain(shown)
      await answer(gate, ada, asked, { verdict: 'deny', reason: 'no' })
      await ask(gate) // hears of the denial
    }
    expect(await gate.received()).toEqual([])
    // Back at what was accepted it is allowed again.
    await gate.restate(gate, {})
    await poll(async () => ((await ask(gate)).kind === 'answered' ? true : undefined))
    expect(await gate.received()).toEqual(['write_thing'])
  })

  it('withdraws what is open for a tool when its change is accepted or it is blocked, and leaves the rest open', async () => {
    const gate = await openOn(kind, { rules: [{ tools: 'files_*_thing', action: 'allow' }] })
    const { pins, calls } = gate.gateway
    const other = { description: 'Does something else' }
    await gate.restate(gate, { write_thing: other, plain_thing: other, read_thing: other })
    for (const name of ['write_thing', 'plain_thing', 'read_thing']) await until(gate, name, 'changed')
    const decisionOf = (wanted: string) => {
      const pin = pins.list(ada, {}).find(({ name }) => name === wanted)
      return { id: pin?.id ?? '', hash: pin?.live?.hash ?? '' }
    }
    const told: string[] = []
    const note = ({ approval }: { approval: Approval }) => void told.push(`${approval.id} ${approval.state}`)
    const waiting = await held(gate)
    const approved = await requestApproval(gate, { given: { n: 2 } })
    await answer(gate, ada, approved)
    const blocked = await held(gate, { tool: 'plain_thing' })
    const untouched = await requestApproval(gate, { tool: 'read_thing' })
    onTestFinished(gate.gateway.events.on('approval-answered', note))

    await pins.accept(ada, [decisionOf('write_thing')])
    expect(await waiting.outcome).toMatchObject({
      kind: 'refused',
      error: {
        code: 'approval-withdrawn',
        message: 'ada accepted the changed definition of files_write_thing: repeat the call',
      },
    })
    await pins.block(bob, decisionOf('plain_thing'))
    expect(await blocked.outcome).toMatchObject({
      error: { code: 'approval-withdrawn', message: 'bob blocked files_plain_thing' },
    })
    const withdrawn = [waiting.approval, approved, blocked.approval]
    expect(told.toSorted()).toEqual(withdrawn.map(({ id }) => `${id} withdrawn`).toSorted())
    for (const { id, call } of withdrawn) {
      const { state, withdrawnBecause } = await gate.gateway.approvals.get(ada, id)
      expect([state, withdrawnBecause]).toEqual(['withdrawn', expect.stringMatching(/accepted|blocked/)])
      expect(await calls.find(call)).toMatchObject({ state: 'denied', error: { code: 'approval-withdrawn' } })
      expect((await entriesOf(gate, call)).at(-1)).toBe('outcome')
    }
    expect(await stateOf(gate, untouched)).toBe('waiting')
    expect(await gate.received()).toEqual([])
    expect(textOf(await ask(gate))).toBe('{"n":1}')
    expect(await codeOf(ask(gate, { tool: 'plain_thing' }))).toBe('tool-not-found')
  })

  it('withdraws an approval when a rule denies the call by now, or wants other people to agree', async () => {
    const gate = await openOn(kind, asking('any'))
    const change = (action: 'ask' | 'deny', approvers: string) =>
      gate.gateway.rules.set(ada, 'global', [{ tools: 'files_write_thing', action, approvers }])
    const denied = await held(gate)
    await change('deny', 'any')
    await answer(gate, ada, denied.approval)
    expect(await codeOf(denied.outcome)).toBe('approval-withdrawn')
    expect(await codeOf(ask(gate))).toBe('call-denied')

    await change('ask', 'any')
    const alone = await held(gate)
    await change('ask', 'two')
    await answer(gate, ada, alone.approval)
    expect(await codeOf(alone.outcome)).toBe('approval-withdrawn')
    expect((await requestApproval(gate)).approvers).toEqual(['two'])
    expect(await gate.received()).toEqual([])
  })

  it('runs one of the equal calls that wait, and gives its outcome to all of them', async () => {
    const gate = await openOn(kind)
    const callers = await Promise.all(Array.from({ length: 10 }, () => held(gate)))
    const [approval = await requestApproval(gate)] = callers.map((caller) => caller.approval)
    await answer(gate, ada, approval)
    const outcomes = await Promise.all(callers.map(({ outcome }) => outcome))
    expect(outcomes.map(textOf)).toEqual(outcomes.map(() => '{"n":1}'))
    expect(new Set(outcomes.map(({ call }) => call.id))).toEqual(new Set([approval.call]))
    expect(await gate.received()).toEqual(['write_thing'])
    expect((await requestApproval(gate)).id).not.toBe(approval.id)
  })

  it('runs nothing for a caller who left, and runs it once when the same call is made again', async () => {
    const gate = await openOn(kind)
    const leaving = new AbortController()
    const { outcome, approval } = await held(gate, { signal: leaving.signal })
    leaving.abort()
    expect(await codeOf(outcome)).toBe('call-cancelled')
    await answer(gate, ada, approval)
    expect(await stateOf(gate, approval)).toBe('approved')
    expect(await gate.received()).toEqual([])

    const again = await ask(gate)
    expect(again.call.id).toBe(approval.call)
    expect(textOf(again)).toBe('{"n":1}')
    expect((await requestApproval(gate)).id).not.toBe(approval.id)
    expect(await gate.received()).toEqual(['write_thing'])
  })

  it('keeps the outcome for a caller who left while it ran, until it was delivered', async () => {
    const gate = await openOn(kind, slowRules)
    const leaving = new AbortController()
    const { outcome, approval } = await held(gate, { ...slowly, signal: leaving.signal })
    await answer(gate, ada, approval)
    await poll(async () => (await gate.received()).length > 0 || undefined)
    leaving.abort()
    await outcome.catch(() => {})

    const again = await ask(gate, slowly)
    expect(textOf(again)).toBe('done')
    expect(again.call).toMatchObject({ id: approval.call, state: 'ok' })
    expect((await requestApproval(gate, slowly)).id).not.toBe(approval.id)
    expect(await gate.received()).toEqual(['echo'])
  })

  it('survives a restart while it waits and while it is approved, and then runs once', async () => {
    const stage = await createStage(kind)
    const before = await stage.open()
    const waiting = await requestApproval(before, { given: { n: 1 } })
    const approved = await requestApproval(before, { given: { n: 2 } })
    await answer(before, ada, approved)
    await before.close()

    const gate = await stage.open()
    const { items } = await gate.gateway.approvals.list(ada, { limit: 10, state: 'waiting' })
    expect(items).toMatchObject([{ id: waiting.id, expiresAt: waiting.expiresAt }])
    expect((await requestApproval(gate, { given: { n: 1 } })).id).toBe(waiting.id)
    await answer(gate, ada, waiting)
    for (const [n, { call }] of [waiting, approved].entries()) {
      const outcome = await ask(gate, { given: { n: n + 1 } })
      expect(outcome.call.id).toBe(call)
      expect(textOf(outcome)).toBe(`{"n":${n + 1}}`)
      await requestApproval(gate, { given: { n: n + 1 } })
    }
    expect(await stage.received()).toEqual(['write_thing', 'write_thing'])
  })

  it('takes the answer of a person, and of nobody else', async () => {
    const gate = await openOn(kind)
    const approval = await requestApproval(gate)
    const tokenFile = { kind: 'user', name: 'admin-token', role: 'administrator' } as const
    const nobody = person('eve', 'administrator')
    for (const by of [helper, stray, tokenFile, nobody, { ...ada, person: false }])
      expect(await codeOf(answer(gate, by, approval))).toBe('person-needed')
    expect(await codeOf(answer(gate, ivy, approval))).toBe('approval-forbidden')
    expect(await codeOf(answer(gate, gus, approval))).toBe('approval-not-found')

    const other = await requestApproval(gate, { given: { n: 2 } })
    const looked = { verdict: 'approve', hash: other.hash } as const
    expect(await codeOf(answer(gate, ada, approval, looked))).toBe('approval-changed')
    expect(await stateOf(gate, approval)).toBe('waiting')
    await answer(gate, mia, approval)
    expect(await codeOf(answer(gate, ada, approval))).toBe('approval-answered')
    expect(textOf(await ask(gate))).toBe('{"n":1}')
  })

  it('shows people what is theirs, and auditors everything', async () => {
    const gate = await openOn(kind)
    const own = await requestApproval(gate)
    const other = await requestApproval(gate, { as: stray })
    const seenBy = async (by: typeof ada) => {
      const { items } = await gate.gateway.approvals.list(by, { limit: 10 })
      return items.map(({ id }) => id)
    }
    expect(new Set(await seenBy(ada))).toEqual(new Set([own.id, other.id]))
    expect(new Set(await seenBy(ivy))).toEqual(new Set([own.id, other.id]))
    expect(await seenBy(mia)).toEqual([own.id])
    expect(await seenBy(helper)).toEqual([own.id])
    expect(await seenBy(gus)).toEqual([])
    expect(await codeOf(gate.gateway.approvals.get(mia, other.id))).toBe('approval-not-found')
    expect(await codeOf(answer(gate, mia, other))).toBe('approval-not-found')
  })

  it('does not take the answer of the owner where a rule wants somebody else', async () => {
    const gate = await openOn(kind, asking('other'))
    const { outcome, approval } = await held(gate)
    expect(await codeOf(answer(gate, mia, approval))).toBe('approval-forbidden')
    expect(await codeOf(answer(gate, mia, approval, 'deny'))).toBe('approval-forbidden')
    await answer(gate, ada, approval)
    expect(textOf(await outcome)).toBe('{"n":1}')

    const own = await requestApproval(gate, { as: ada })
    expect(await codeOf(answer(gate, ada, own))).toBe('approval-forbidden')
    await answer(gate, bob, own)
    expect(await stateOf(gate, own)).toBe('approved')
  })

  it('waits for two different people where a rule wants two, and one no is a no', async () => {
    const gate = await openOn(kind, asking('two'))
    const { outcome, approval } = await held(gate)
    await answer(gate, mia, approval)
    expect(await stateOf(gate, approval)).toBe('waiting')
    expect(await codeOf(answer(gate, mia, approval))).toBe('approval-forbidden')
    expect(await gate.received()).toEqual([])
    await answer(gate, ada, approval)
    expect(textOf(await outcome)).toBe('{"n":1}')
    expect(await gate.gateway.calls.find(approval.call)).toMatchObject({ decision: 'approved by mia and ada' })

    const refused = await held(gate, { given: { n: 2 } })
    await answer(gate, mia, refused.approval)
    await answer(gate, ada, refused.approval, 'deny')
    expect(await codeOf(refused.outcome)).toBe('approval-denied')
    expect(await gate.received()).toEqual(['write_thing'])
  })

  it('asks the people of a group where a rule names one', async () => {
    const gate = await openOn(kind, asking('group:ops'))
    const { outcome, approval } = await held(gate)
    for (const by of [ada, mia]) expect(await codeOf(answer(gate, by, approval))).toBe('approval-forbidden')
    const { items } = await gate.gateway.approvals.list(gus, { limit: 10 })
    expect(items.map(({ id }) => id)).toEqual([approval.id])
    await answer(gate, gus, approval)
    expect(textOf(await outcome)).toBe('{"n":1}')
  })

  it('gives a group that the owner of a project names no right to see or answer, and still wants its word', async () => {
    const rules = [{ action: 'ask' as const, approvers: 'group:ops' }]
    const gate = await openOn(kind, {
      projects: { shop: { owners: ['gus'], rules } },
      agents: { helper: { project: 'shop' } },
    })
    const { outcome, approval } = await held(gate)
    expect(approval.approvers.toSorted()).toEqual(['group:ops', 'owner'])
    expect((await gate.gateway.approvals.list(gus, { limit: 10 })).items).toEqual([])
    expect(await codeOf(answer(gate, gus, approval))).toBe('approval-not-found')
    for (const by of [ada, mia]) expect(await codeOf(answer(gate, by, approval))).toBe('approval-forbidden')
    await gate.gateway.users.change(ada, 'mia', { groups: ['ops'] })
    await answer(gate, mia, approval)
    expect(textOf(await outcome)).toBe('{"n":1}')
  })

  it('looks at rights when somebody answers, whatever they were when the approval was opened', async () => {
    const gate = await openOn(kind, {
      rules: [
        { tools: 'files_write_thing', action: 'ask', approvers: 'group:ops' },
        { tools: 'files_plain_thing', action: 'ask' },
      ],
    })
    const ofGroup = await requestApproval(gate)
    const ofAll = await requestApproval(gate, { tool: 'plain_thing' })
    await gate.gateway.approvals.get(gus, ofGroup.id)
    await gate.gateway.approvals.get(bob, ofAll.id)
    const { users, agents } = gate.gateway
    await users.change(ada, 'gus', { groups: [] })
    await users.change(ada, 'bob', { role: 'member' })
    expect(await codeOf(answer(gate, gus, ofGroup))).toBe('approval-not-found')
    expect(await codeOf(answer(gate, bob, ofAll))).toBe('approval-forbidden')
    await users.change(ada, 'bob', { role: 'administrator', disabled: true })
    expect(await codeOf(answer(gate, bob, ofAll))).toBe('person-needed')
    await agents.change(ada, 'helper', { owner: 'gus' })
    expect(await codeOf(answer(gate, mia, ofAll))).toBe('approval-not-found')
    expect([await stateOf(gate, ofGroup), await stateOf(gate, ofAll)]).toEqual(['waiting', 'waiting'])
  })

  it('lets ten approvals of one principal wait, and another when one was answered', async () => {
    const gate = await openOn(kind, { agents: { stray: { limits: { pending: 2 } } } })
    const all = await Promise.all(Array.from({ length: 10 }, (_, n) => requestApproval(gate, { given: { n } })))
    expect(new Set(all.map(({ id }) => id)).size).toBe(10)
    const more = { given: { n: 10 } }
    const refused = await ask(gate, more)
    expect(refused).toMatchObject({ error: { code: 'limit-exceeded', details: { limit: 'pending' } } })
    expect(await gate.gateway.calls.find(refused.call.id)).toMatchObject({ state: 'denied', arguments: { n: 10 } })
    expect((await requestApproval(gate, { given: { n: 3 } })).id).toBe(all[3]?.id)

    const [first] = all
    if (first) await answer(gate, ada, first, 'deny')
    await requestApproval(gate, more)
    const strays = [1, 2, 3].map((n) => codeOf(ask(gate, { as: stray, given: { n } })))
    expect((await Promise.all(strays)).toSorted()).toEqual(['limit-exceeded', 'waiting', 'waiting'])
  })

  it('is shown with what the agent did before it, and not with what that was about', async () => {
    const gate = await openOn(kind, { rules: [{ tools: 'files_write_thing', action: 'ask', approvers: 'group:ops' }] })
    for (let n = 0; n < 12; n++) await ask(gate, { tool: 'read_thing', given: { n } })
    const { id, call } = await requestApproval(gate)
    const { recentCalls } = await gate.gateway.approvals.get(gus, id)
    for (const each of recentCalls) expect(Object.keys(each).toSorted()).toEqual(['id', 'startedAt', 'state', 'tool'])
    expect(recentCalls.map((each) => each.id)).not.toContain(call)
    expect(recentCalls.length).toBeLessThanOrEqual(10)
  })

  it('is told of once when it is asked and once when it is answered', async () => {
    const gate = await openOn(kind, { limits: { pending: 30 } })
    const told: string[] = []
    for (const name of ['approval-requested', 'approval-answered'] as const) {
      const note = ({ approval, elsewhere }: { approval: Approval; elsewhere?: boolean }) =>
        void told.push(`${name} ${approval.id}${elsewhere ? ' elsewhere' : ''}`)
      onTestFinished(gate.gateway.events.on(name, note))
    }
    const all = await Promise.all(Array.from({ length: 30 }, (_, n) => requestApproval(gate, { given: { n } })))
    await Promise.all(all.map((each) => answer(gate, ada, each, 'deny')))
    const expected = all.flatMap(({ id }) => [`approval-requested ${id}`, `approval-answered ${id}`])
    expect(told.toSorted()).toEqual(expected.toSorted())
  })
})

it('holds so many callers of one principal and no more, however often the same call is made', async () => {
  const gate = await openOn('SQLite')
  const { outcome, approval } = await held(gate)
  const others = Array.from({ length: 510 }, () => codeOf(ask(gate, { hold() {} })))
  await poll(async () => {
    const { items } = await gate.gateway.calls.list({ limit: 20, state: 'denied' })
    return items.length === 11 || undefined
  })
  expect(await codeOf(ask(gate, { as: stray, hold: undefined }))).toBe('waiting')
  await answer(gate, ada, approval, 'deny')
  expect((await outcome).kind).toBe('refused')
  const codes = await Promise.all(others)
  expect(codes.filter((code) => code === 'limit-exceeded')).toHaveLength(11)
  expect(codes.filter((code) => code === 'approval-denied')).toHaveLength(499)
})

it('keeps the outcome of a call that takes longer than anybody waits for it', async () => {
  const stage = await createStage('SQLite', { config: slowRules })
  // Half a minute passes in a third of a second.
  const clock = {
    ...systemClock,
    common: true as const,
    now: () => stage.time.now,
    monotonic: () => performance.now() * 100,
  }
  const gate = await stage.open('first', { clock })
  const longer = { ...slowly, given: { ...slowly.given, delayMs: 1500 } }
  const leaving = new AbortController()
  const { outcome, approval } = await held(gate, { ...longer, signal: leaving.signal })
  await answer(gate, ada, approval)
  await poll(async () => (await stage.received()).length > 0 || undefined)
  leaving.abort()
  expect(await codeOf(ask(gate, longer))).toBe('idempotency-busy')
  await outcome.catch(() => {})
  expect(textOf(await ask(gate, longer))).toBe('done')
  expect((await requestApproval(gate, longer)).id).not.toBe(approval.id)
  expect(await stage.received()).toEqual(['echo'])
})
