import { describe, expect, it } from 'vitest'
import type { Approval } from '../../../src/contract/approval.ts'
import type { Grant, GrantWish, NewGrant } from '../../../src/contract/grant.ts'
import type { Principal } from '../../../src/contract/principal.ts'
import { databases } from '../../storage/support.ts'
import { poll } from '../../support/gateway.ts'
import {
  ada,
  answer,
  ask,
  bob,
  codeOf,
  createStage,
  type Gate,
  gus,
  helper,
  ivy,
  mia,
  openOn,
  requestApproval,
  type Stage,
  stray,
  textOf,
} from './stage.ts'

const inAnHour = ({ time }: Pick<Stage, 'time'>, minutes = 60) => new Date(time.now + minutes * 60_000).toISOString()

function give(gate: Gate & Pick<Stage, 'time'>, wanted: Partial<NewGrant> = {}, by: Principal = ada): Promise<Grant> {
  const forWhom = wanted.scope === undefined ? { principal: 'agent:helper' } : {}
  const grant = { tools: 'files_write_thing', ...forWhom, budget: 3, expiresAt: inAnHour(gate), ...wanted }
  return gate.gateway.grants.add(by, grant)
}

/** Approves a call together with a grant, and runs it. */
async function approveWith(gate: Gate, grant: GrantWish, given = { n: 1, path: '/srv/a' }): Promise<void> {
  const approval = await requestApproval(gate, { given })
  await answer(gate, ada, approval, { verdict: 'approve', grant })
  expect(await codeOf(ask(gate, { given }))).toBe('answered')
}

/** How each call went, one after the other. */
async function inOrder(gate: Gate, given: readonly object[], tool = 'write_thing'): Promise<string[]> {
  const ends: string[] = []
  for (const each of given) ends.push(await codeOf(ask(gate, { tool, given: { ...each } })))
  return ends
}

async function findGrant({ gateway }: Gate, { id }: Pick<Grant, 'id'>): Promise<Grant> {
  const { items } = await gateway.grants.list(ada, { limit: 50 })
  const found = items.find((grant) => grant.id === id)
  if (!found) throw new Error('It is not listed')
  return found
}

const a = { n: 1, path: '/srv/a' }

describe.each(databases)('on %s', (kind) => {
  it.each([
    ['this exact call', { covers: 'call' }, [a, { ...a, n: 2 }, a, a], ['answered', 'waiting', 'answered', 'waiting']],
    [
      'calls that share an argument',
      { covers: 'shape', same: ['/path'] },
      [
        { ...a, n: 2 },
        { ...a, path: '/srv/b' },
        { ...a, n: 3 },
        { ...a, n: 4 },
      ],
      ['answered', 'waiting', 'answered', 'waiting'],
    ],
    ['the tool', { covers: 'tool' }, [{ n: 5 }, {}, { n: 6 }], ['answered', 'answered', 'waiting']],
  ] as const)('permits two further calls when an answer gives it for %s', async (_, wish, given, ends) => {
    const gate = await openOn(kind)
    const same = 'same' in wish ? { same: [...wish.same] } : {}
    await approveWith(gate, { covers: wish.covers, ...same, budget: 2, minutes: 5 })
    expect(await inOrder(gate, given)).toEqual(ends)
    expect(await codeOf(ask(gate, { as: stray, given: a }))).toBe('waiting')
    expect(await gate.received()).toHaveLength(3)
    const { items } = await gate.gateway.grants.list(ada, { limit: 5 })
    expect(items).toMatchObject([{ givenBy: 'ada', principal: 'agent:helper', used: 2, budget: 2 }])
  })

  it('that another call used up leaves the place of the waiting call free for the next call', async () => {
    const gate = await openOn(kind, { agents: { helper: { limits: { concurrent: 2 } } } })
    await give(gate, { budget: 1 })
    const waiting = Promise.withResolvers<Approval>()
    const [first, second] = [1, 2].map((n) => ask(gate, { given: { n }, hold: waiting.resolve, onDelivered: () => {} }))
    await Promise.any([first, second])
    const approval = await waiting.promise
    // The answer of the call that used the grant is not read yet, so one place of two is taken.
    expect(await codeOf(ask(gate, { tool: 'read_thing' }))).toBe('answered')
    await answer(gate, ada, approval, { verdict: 'deny' })
    await Promise.allSettled([first, second])
  })

  it('permits as many calls as its budget says until its time is up, and tells how many and when last', async () => {
    const gate = await openOn(kind)
    const grant = await give(gate, { budget: 2, reason: 'The move' })
    expect(await findGrant(gate, grant)).toMatchObject({ used: 0, budget: 2, reason: 'The move', givenBy: 'ada' })
    expect(await inOrder(gate, [{ n: 1 }])).toEqual(['answered'])
    gate.time.now += 1000
    expect(await inOrder(gate, [{ n: 2 }, { n: 3 }])).toEqual(['answered', 'waiting'])
    const spent = await findGrant(gate, grant)
    expect(spent).toMatchObject({ used: 2, lastUsedAt: new Date(gate.time.now).toISOString() })

    await give(gate, { budget: 5, expiresAt: inAnHour(gate, 1) })
    expect(await inOrder(gate, [{ n: 4 }])).toEqual(['answered'])
    gate.time.now += 60_000
    expect(await inOrder(gate, [{ n: 5 }])).toEqual(['waiting'])
    expect(await gate.received()).toHaveLength(3)
    const [call] = (await gate.gateway.calls.list({ limit: 1, state: 'ok' })).items
    expect(call?.decision).toBe('allowed by a grant of ada')
  })

  it('is for one principal, or for everybody of a scope', async () => {
    const gate = await openOn(kind, { projects: { shop: {} }, agents: { stray: { project: 'shop' } } })
    const own = await give(gate, { principal: 'agent:helper' })
    expect(await codeOf(ask(gate, { as: stray }))).toBe('waiting')
    expect(await codeOf(ask(gate))).toBe('answered')
    await gate.gateway.grants.revoke(ada, own.id)

    await give(gate, { scope: 'project:shop', tools: 'files_plain_thing' })
    expect(await codeOf(ask(gate, { as: stray, tool: 'plain_thing' }))).toBe('answered')
    expect(await codeOf(ask(gate, { tool: 'plain_thing' }))).toBe('waiting')
    await give(gate, { scope: 'global', tools: 'files_idempotent_*' })
    for (const as of [helper, stray, mia])
      expect(await codeOf(ask(gate, { as, tool: 'idempotent_thing' }))).toBe('answered')
    expect(await codeOf(give(gate, { principal: 'agent:helper', scope: 'global' }))).toBe('grant-invalid')
  })

  it('holds what its conditions say of the arguments', async () => {
    const gate = await openOn(kind)
    await give(gate, { arguments: { '/path': { glob: '/srv/*' }, '/n': { max: 10 } }, budget: 9 })
    expect(await inOrder(gate, [{ path: '/srv/a', n: 1 }])).toEqual(['answered'])
    expect(await inOrder(gate, [{ path: '/etc/a', n: 1 }, { path: '/srv/a', n: 11 }, { n: 1 }])).toEqual(
      Array(3).fill('waiting'),
    )
  })

  it('gives back what was certainly not sent, and not what may have been', async () => {
    const stage = await createStage(kind, { ownServer: true })
    const supervision = { backoff: { first: 60_000, most: 60_000, factor: 2 } }
    const gate = { ...stage, ...(await stage.open('first', { supervision })) }
    const grant = await give(gate, { tools: 'files_exit', budget: 1 })
    const spared = await give(gate, { budget: 1 })
    const sent = await ask(gate, { tool: 'exit' })
    expect(sent).toMatchObject({ kind: 'refused', call: { state: 'unknown' } })
    expect(await findGrant(gate, grant)).toMatchObject({ used: 1 })

    await poll(() => gate.gateway.servers.list().some(({ state }) => state !== 'connected') || undefined)
    for (let round = 0; round < 3; round++) {
      expect(await ask(gate)).toMatchObject({ kind: 'refused', call: { state: 'failed' } })
      expect(await findGrant(gate, spared)).toMatchObject({ used: 0 })
    }
    await gate.gateway.servers.reconnect(ada, 'files')
    expect(await inOrder(gate, [{ n: 1 }, { n: 2 }])).toEqual(['answered', 'waiting'])
    expect(await findGrant(gate, spared)).toMatchObject({ used: 1 })
  })

  it('permits nothing once it was taken back', async () => {
    const gate = await openOn(kind)
    const grant = await give(gate)
    expect(await inOrder(gate, [{ n: 1 }])).toEqual(['answered'])
    const revoked = await gate.gateway.grants.revoke(bob, grant.id)
    expect(revoked).toMatchObject({ used: 1, revokedBy: 'user:bob', revokedAt: expect.any(String) })
    expect(await inOrder(gate, [{ n: 2 }])).toEqual(['waiting'])
    expect(await gate.gateway.grants.revoke(ada, grant.id)).toMatchObject({ revokedBy: 'user:bob' })
    expect(await codeOf(gate.gateway.grants.revoke(ada, 'grant_none'))).toBe('grant-not-found')
    expect(await gate.received()).toHaveLength(1)
  })

  it('is void for a tool that was changed since, also once somebody accepted the change', async () => {
    const gate = await openOn(kind)
    await give(gate, { tools: 'files_*', budget: 9 })
    expect(await inOrder(gate, [{ n: 1 }])).toEqual(['answered'])
    await gate.restate(gate, { write_thing: { description: 'Does something else' } })
    const pin = await poll(() => gate.gateway.pins.list(ada, {}).find(({ state }) => state === 'changed'))
    expect(await inOrder(gate, [{ n: 2 }])).toEqual(['waiting'])
    const renewed = give(gate, { budget: 9 })
    await renewed
    expect(await inOrder(gate, [{ n: 3 }])).toEqual(['waiting']) // nobody has accepted it

    await gate.gateway.pins.accept(ada, [{ id: pin.id, hash: pin.live?.hash ?? '' }])
    await gate.gateway.grants.revoke(ada, (await renewed).id)
    expect(await inOrder(gate, [{ n: 4 }])).toEqual(['waiting'])
    expect(await inOrder(gate, [{ n: 4 }], 'plain_thing')).toEqual(['answered'])
    await give(gate)
    expect(await inOrder(gate, [{ n: 5 }])).toEqual(['answered'])
    expect(await gate.received()).toEqual(['write_thing', 'plain_thing', 'write_thing'])
  })

  it('permits what is dangerous only by its exact name', async () => {
    const gate = await openOn(kind)
    await give(gate, { tools: 'files_*', budget: 9 })
    expect(await inOrder(gate, [{ n: 1 }], 'destroy_thing')).toEqual(['waiting'])
    expect(await codeOf(give(gate, { tools: 'files_destroy_*' }))).toBe('grant-invalid')
    await give(gate, { tools: 'files_destroy_thing', budget: 1 })
    expect(await inOrder(gate, [{ n: 2 }, { n: 3 }], 'destroy_thing')).toEqual(['answered', 'waiting'])
  })

  it('spends what ends first before the rest, and the next when that is used up', async () => {
    const gate = await openOn(kind)
    const later = await give(gate, { budget: 1, expiresAt: inAnHour(gate, 60) })
    const sooner = await give(gate, { budget: 1, expiresAt: inAnHour(gate, 5) })
    expect(await inOrder(gate, [{ n: 1 }])).toEqual(['answered'])
    expect([(await findGrant(gate, sooner)).used, (await findGrant(gate, later)).used]).toEqual([1, 0])
    expect(await inOrder(gate, [{ n: 2 }, { n: 3 }])).toEqual(['answered', 'waiting'])
    expect([(await findGrant(gate, sooner)).used, (await findGrant(gate, later)).used]).toEqual([1, 1])
  })

  it('permits a reading call that a rule asks about', async () => {
    const gate = await openOn(kind, { rules: [{ tools: 'files_read_thing', action: 'ask' }] })
    const grant = await give(gate, { tools: 'files_read_thing', budget: 2 })
    expect(await inOrder(gate, [{ n: 1 }, { n: 2 }, { n: 3 }], 'read_thing')).toEqual([
      'answered',
      'answered',
      'waiting',
    ])
    expect(await findGrant(gate, grant)).toMatchObject({ used: 2 })
    expect(await gate.received()).toHaveLength(2)
  })

  it('is given and taken back by people: administrators everywhere, members to what is theirs', async () => {
    const gate = await openOn(kind)
    const tokenFile = { kind: 'user', name: 'admin-token', role: 'administrator' } as const
    for (const by of [helper, tokenFile]) {
      expect(await codeOf(give(gate, {}, by))).toBe('person-needed')
      expect(await codeOf(gate.gateway.grants.revoke(by, 'grant_any'))).toBe('person-needed')
    }
    expect(await codeOf(give(gate, {}, gus))).toBe('forbidden')
    expect(await codeOf(give(gate, { scope: 'global' }, mia))).toBe('forbidden')
    await gate.gateway.agents.add(ada, { name: 'watcher', owner: 'ivy' })
    expect(await codeOf(give(gate, { principal: 'agent:watcher' }, ivy))).toBe('forbidden')

    const own = await give(gate, {}, mia)
    const other = await give(gate, { principal: 'agent:stray' })
    expect((await gate.gateway.grants.list(mia, { limit: 9 })).items.map(({ id }) => id)).toEqual([own.id])
    expect((await gate.gateway.grants.list(gus, { limit: 9 })).items).toEqual([])
    expect((await gate.gateway.grants.list(ivy, { limit: 9 })).items).toHaveLength(2)
    expect(await codeOf(gate.gateway.grants.revoke(mia, other.id))).toBe('grant-not-found')
    expect(await codeOf(gate.gateway.grants.revoke(ivy, own.id))).toBe('forbidden')
    await gate.gateway.grants.revoke(mia, own.id)
  })

  it('stands for nobody whom a rule wants beside the one who gave it', async () => {
    const gate = await openOn(kind, {
      rules: [
        { tools: 'files_write_thing', action: 'ask', approvers: 'other' },
        { tools: 'files_plain_thing', action: 'ask', approvers: 'two' },
        { tools: 'files_idempotent_thing', action: 'ask', approvers: 'group:ops' },
      ],
    })
    const tools = ['write_thing', 'plain_thing', 'idempotent_thing']
    const howItGoes = async () => {
      const ends: string[] = []
      for (const tool of tools) ends.push(await codeOf(ask(gate, { tool })))
      return ends
    }
    await give(gate, { tools: 'files_*', budget: 9 }, mia)
    expect(await howItGoes()).toEqual(['waiting', 'waiting', 'waiting'])
    await give(gate, { tools: 'files_*', budget: 9 }, ada)
    expect(await howItGoes()).toEqual(['answered', 'waiting', 'waiting'])
    await gate.gateway.users.change(bob, 'ada', { groups: ['ops'] })
    expect(await howItGoes()).toEqual(['answered', 'waiting', 'answered'])
  })

  it('ends when whoever gave it could no longer answer', async () => {
    const gate = await openOn(kind)
    await give(gate, { tools: 'files_write_thing', budget: 9 }, mia)
    expect(await inOrder(gate, [{ n: 1 }])).toEqual(['answered'])
    await gate.gateway.users.change(ada, 'mia', { disabled: true })
    expect(await inOrder(gate, [{ n: 2 }])).toEqual(['waiting'])
    await gate.gateway.users.change(ada, 'mia', { disabled: false })
    expect(await inOrder(gate, [{ n: 3 }])).toEqual(['answered'])
  })

  it('is not given by the first of two people who have to agree', async () => {
    const gate = await openOn(kind, { rules: [{ tools: 'files_write_thing', action: 'ask', approvers: 'two' }] })
    const approval = await requestApproval(gate)
    const grant = { covers: 'tool', budget: 5, minutes: 5 } as const
    expect(await codeOf(answer(gate, ada, approval, { verdict: 'approve', grant }))).toBe('grant-invalid')
    await answer(gate, ada, approval)
    await answer(gate, bob, approval)
    expect(textOf(await ask(gate))).toBe('{"n":1}')
    expect(await inOrder(gate, [{ n: 2 }])).toEqual(['waiting'])
    expect((await gate.gateway.grants.list(ada, { limit: 5 })).items).toEqual([])
  })

  it('is as much used after a restart as before', async () => {
    const stage = await createStage(kind)
    const before = { ...stage, ...(await stage.open()) }
    const grant = await give(before, { budget: 2 })
    expect(await inOrder(before, [{ n: 1 }])).toEqual(['answered'])
    await before.close()
    const gate = await stage.open()
    expect(await findGrant(gate, grant)).toMatchObject({ used: 1 })
    expect(await inOrder(gate, [{ n: 2 }, { n: 3 }])).toEqual(['answered', 'waiting'])
  })
})

it('holds on every gateway once it was given, and on none once it was taken back', async () => {
  const stage = await createStage('PostgreSQL')
  const first = { ...stage, ...(await stage.open('first')) }
  const second = await stage.open('second')
  for (let round = 0; round < 5; round++) {
    const grant = await give(first, { budget: 9 })
    expect(await inOrder(second, [{ n: round }])).toEqual(['answered'])
    await second.gateway.grants.revoke(ada, grant.id)
    expect(await inOrder(first, [{ n: round }])).toEqual(['waiting'])
    await first.gateway.approvals.answer(ada, (await requestApproval(first, { given: { n: round } })).id, {
      verdict: 'deny',
    })
    expect(await inOrder(second, [{ n: round }])).toEqual(['approval-denied'])
  }
  expect(await stage.received()).toHaveLength(5)
})
