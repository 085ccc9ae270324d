import { describe, expect, it } from 'vitest'
import type { GrantWish } from '../../../src/contract/grant.ts'
import { databases } from '../../storage/support.ts'
import { ada, answer, ask, codeOf, openOn, requestApproval } from './stage.ts'

const staging = { 'example.com/tenant': 'staging' }
const production = { 'example.com/tenant': 'production' }
const traceOf = (span: string) => ({ traceparent: `00-0af7651916cd43dd8448eb211c80319c-${span}-01` })

describe.each(databases)('`_meta` of a call on %s', (kind) => {
  it('is part of what is approved: with another one the call asks again', async () => {
    const gate = await openOn(kind)
    const approval = await requestApproval(gate, { meta: staging })
    expect(approval.meta).toEqual(staging)
    await answer(gate, ada, approval)
    const other = await requestApproval(gate, { meta: production })
    const none = await requestApproval(gate)
    expect(new Set([approval.id, other.id, none.id]).size).toBe(3)
    expect(new Set([approval.hash, other.hash, none.hash]).size).toBe(3)
    expect(await gate.received()).toEqual([])
    expect(await codeOf(ask(gate, { meta: staging }))).toBe('answered')
    expect((await gate.lines()).map(({ meta }) => meta)).toEqual([staging])
  })

  it('stands in the approval, in the call and in every entry of the record', async () => {
    const gate = await openOn(kind)
    const approval = await requestApproval(gate, { meta: staging })
    expect(await gate.gateway.approvals.get(ada, approval.id)).toMatchObject({ meta: staging })
    await answer(gate, ada, approval)
    await ask(gate, { meta: staging })
    expect(await gate.gateway.calls.find(approval.call)).toMatchObject({ meta: staging, state: 'ok' })
    const { items } = await gate.gateway.audit.list({ limit: 50, call: approval.call })
    const metas = items.filter((entry) => entry.kind === 'approval' || entry.kind === 'intent')
    expect(metas.map(({ body }) => body.meta)).toEqual([staging, staging])
    expect(await gate.gateway.audit.verify(AbortSignal.timeout(20_000))).toMatchObject({ clean: true })
  })

  it('is seen by rules, and a denied call keeps it in its entry', async () => {
    const denied = { tools: 'files_*', meta: { '/example.com~1tenant': 'production' }, action: 'deny' as const }
    const gate = await openOn(kind, { rules: [{ tools: 'files_*', action: 'allow' }, denied] })
    expect(await codeOf(ask(gate, { meta: staging }))).toBe('answered')
    expect(await codeOf(ask(gate, { meta: production }))).toBe('call-denied')
    expect(await codeOf(ask(gate))).toBe('answered')
    expect((await gate.lines()).map(({ meta = {} }) => meta)).toEqual([staging, {}])
    const { items } = await gate.gateway.audit.list({ limit: 50 })
    expect(items.find(({ body }) => body.state === 'denied')?.body.meta).toEqual(production)
  })

  it.each<[string, GrantWish['covers']]>([
    ['this call', 'call'],
    ['calls that share an argument', 'shape'],
    ['the tool', 'tool'],
  ])('is fixed by a grant for %s, as it was in the approved call', async (_, covers) => {
    const gate = await openOn(kind)
    const grant: GrantWish = { covers, budget: 10, minutes: 5, ...(covers === 'shape' && { same: ['/n'] }) }
    await answer(gate, ada, await requestApproval(gate, { meta: staging }), { verdict: 'approve', grant })
    const ends = [
      await codeOf(ask(gate, { meta: staging })),
      await codeOf(ask(gate, { meta: staging })),
      await codeOf(ask(gate, { meta: production })),
      await codeOf(ask(gate)),
    ]
    expect(ends).toEqual(['answered', 'answered', 'waiting', 'waiting'])
    expect(await gate.received()).toHaveLength(2)
  })

  it('is permitted by no grant that was given without it', async () => {
    const gate = await openOn(kind)
    const expiresAt = new Date(gate.time.now + 3_600_000).toISOString()
    const tools = 'files_write_thing'
    await gate.gateway.grants.add(ada, { tools, principal: 'agent:helper', budget: 5, expiresAt })
    expect(await codeOf(ask(gate))).toBe('answered')
    expect(await codeOf(ask(gate, { meta: staging }))).toBe('waiting')
  })

  it('may have another trace context when it runs, which is sent and recorded', async () => {
    const gate = await openOn(kind)
    const approval = await requestApproval(gate, { meta: staging, trace: traceOf('b7ad6b7169203331') })
    expect(approval.meta).toEqual(staging)
    await answer(gate, ada, approval)
    const trace = traceOf('00f067aa0ba902b7')
    expect(await codeOf(ask(gate, { meta: staging, trace }))).toBe('answered')
    expect((await gate.lines()).map(({ meta }) => meta)).toEqual([{ ...staging, ...trace }])
    expect(await gate.gateway.calls.find(approval.call)).toMatchObject({ meta: { ...staging, ...trace } })
    const { items } = await gate.gateway.audit.list({ limit: 50, call: approval.call })
    expect(items.find((entry) => entry.kind === 'intent')?.body.meta).toEqual({ ...staging, ...trace })
  })
})
