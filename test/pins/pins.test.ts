import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/contract/json.ts'
import { judgeAlong } from '../../src/pins/chain.ts'
import { stateOf, toPinId } from '../../src/pins/state.ts'
import type { StoredPin } from '../../src/storage/tables/pins.ts'
import { definition, judge, judgeOne, reversed, toolLike } from '../definitions/support.ts'

/** Every place in a value, as a function that puts something else there. */
function changesOf(value: JsonValue, put: (changed: JsonValue) => JsonValue): JsonValue[] {
  if (typeof value === 'string') return [put(`${value}.`), put(value.slice(1))]
  if (typeof value === 'number') return [put(value + 1)]
  if (typeof value === 'boolean') return [put(!value)]
  if (Array.isArray(value)) {
    const inner = value.flatMap((item, index) => changesOf(item, (changed) => put(value.with(index, changed))))
    return [...inner, put([...value, 'x']), put(value.slice(1))]
  }
  if (value === null) return []
  const inner = Object.entries(value).flatMap(([key, item]) => [
    ...changesOf(item, (changed) => put({ ...value, [key]: changed })),
    put(Object.fromEntries(Object.entries(value).filter(([other]) => other !== key))),
  ])
  return [...inner, put({ ...value, added: 'x' })]
}

const changes = changesOf(definition, (changed) => changed).filter(
  (changed) => judge(changed).tools.length === 1 && judgeOne(changed).name === definition.name,
)

/** Changes that a way of comparing definitions does not see. */
function unseen(same: (a: JsonValue, b: JsonValue) => boolean): JsonValue[] {
  return changes.filter((changed) => same(definition, changed))
}

describe('a pin', () => {
  it('sees any change of anything that is shown', () => {
    expect(changes.length).toBeGreaterThan(40)
    expect(unseen((a, b) => judgeOne(a).hash === judgeOne(b).hash)).toEqual([])
  })

  it('would miss most of them if it compared descriptions only', () => {
    expect(unseen((a, b) => judgeOne(a).description === judgeOne(b).description).length).toBeGreaterThan(30)
  })

  it('does not see the order of keys, spaces, or how a letter is written', () => {
    const { hash } = judgeOne(definition)
    expect(judgeOne(JSON.stringify(reversed(definition), null, 3)).hash).toBe(hash)
    expect(judgeOne(JSON.stringify(definition).replace('Read a file', '\\u0052ead a file')).hash).toBe(hash)
  })

  it('stays the same for the same definition, in whatever order its keys come', () => {
    fc.assert(
      fc.property(toolLike, (tool) => {
        const value: JsonValue = JSON.parse(JSON.stringify(tool) ?? 'null')
        const hashes = [value, reversed(value)].map((each) => judge(each).tools[0]?.hash)
        expect(hashes[1]).toBe(hashes[0])
      }),
      { numRuns: 150 },
    )
  })

  it('belongs to one thing of one server in one scope', () => {
    const part = fc.constantFrom('a', 'b', 'a b', '["a"', 'global', 'user:a', 'tool', '')
    const kind = fc.constantFrom('tool' as const, 'prompt' as const)
    const key = fc.record({ server: part, scope: part, kind, name: part })
    fc.assert(
      fc.property(key, key, (a, b) => {
        expect(toPinId(a) === toPinId(b)).toBe(JSON.stringify(a) === JSON.stringify(b))
      }),
      { numRuns: 200 },
    )
  })
})

describe('what stands between a definition and agents', () => {
  const pin = { state: 'accepted' as const, accepted: { hash: 'a', text: '{}' }, baseline: false }
  const waiting = { state: 'waiting' as const, accepted: undefined, baseline: false }
  const live = (hash: string, reason?: string) => ({ hash, reason, kind: 'tool' as const })
  it.each([
    ['a tool as it was accepted', pin, live('a'), 'accepted'],
    ['a tool that went away', pin, undefined, 'accepted'],
    ['a tool that says something else', pin, live('b'), 'changed'],
    ['a tool that nobody knows', undefined, live('b'), 'new'],
    ['a tool that nobody accepted', waiting, live('b'), 'new'],
    ['a new tool that steers', undefined, live('b', 'it steers'), 'suspicious'],
    ['a tool whose new text steers', pin, live('b', 'it steers'), 'suspicious'],
    ['a text that a person accepted though it steers', pin, live('a', 'it steers'), 'accepted'],
    ['a text of the baseline that is found to steer later', { ...pin, baseline: true }, live('a', 'it'), 'suspicious'],
    ['a blocked tool', { ...pin, state: 'blocked' as const }, live('a'), 'blocked'],
    ['a blocked tool that changed', { ...pin, state: 'blocked' as const }, live('b'), 'blocked'],
  ])('%s', (_, stored, now, state) => {
    expect(stateOf(stored, now)).toBe(state)
  })
})

describe('a server that refines others', () => {
  type Link = { readonly strict: boolean; readonly pin: StoredPin | undefined }
  const hash = fc.constantFrom('a', 'b')
  const accepted = (byAdministrator: boolean) =>
    fc.record({ accepted: hash, baseline: fc.boolean(), byAdministrator: fc.constant(byAdministrator) })
  const stored = fc
    .oneof(
      fc.tuple(fc.constantFrom('accepted' as const, 'blocked' as const), fc.oneof(accepted(true), accepted(false))),
      fc.constant(['waiting' as const, { accepted: undefined, baseline: false, byAdministrator: false }] as const),
    )
    .map(
      ([state, { accepted: of, baseline, byAdministrator }]): StoredPin => ({
        ...{ server: 's', scope: 'x', kind: 'tool', name: 't', state, seen: undefined, decidedBy: undefined },
        decidedAt: undefined,
        accepted: of === undefined ? undefined : { hash: of, text: '{}' },
        baseline,
        byAdministrator: byAdministrator && !baseline,
      }),
    )
  const link = fc.record({ strict: fc.boolean(), pin: fc.option(stored, { nil: undefined }) })
  const chains = fc.array(link, { minLength: 1, maxLength: 4 })
  const lives = fc.record({ hash, reason: fc.constantFrom(undefined, 'it steers') })
  const judgeChain = (links: readonly Link[], { hash, reason }: { hash: string; reason: string | undefined }) => {
    const chain = links.map(({ strict }, index) => ({ name: 's', scope: `scope ${index}`, strict }))
    const live = { kind: 'tool' as const, name: 't', hash, reason, text: () => '{}' }
    return judgeAlong(chain, ({ scope }) => links[Number(scope.slice(6))]?.pin, live)
  }
  /** How free a tool is: called, called after asking, not offered. */
  const freedom = ({ state, hidden }: { state: string; hidden: boolean }) => (hidden ? 0 : state === 'accepted' ? 2 : 1)

  /** Chains in which a way of judging lets a tool be freer than one of the entries alone would. */
  function looser(judgeWhole: typeof judgeChain) {
    return fc.check(
      fc.property(chains, lives, (links, live) => {
        const whole = judgeWhole(links, live)
        const settles = ({ pin }: Link) =>
          pin?.state === 'accepted' && pin.byAdministrator && pin.accepted?.hash === live.hash
        const isBlocked = links.some(({ pin }) => pin?.state === 'blocked')
        if (isBlocked) return whole.state === 'blocked'
        if (links.some(settles)) return whole.state === 'accepted'
        return links.every((each, index) => {
          const hasOpinion = each.pin !== undefined || each.strict || index === links.length - 1
          return !hasOpinion || freedom(whole) <= freedom(judgeChain([each], live))
        })
      }),
      { numRuns: 2000, seed: 7 },
    ).failed
  }

  it('is never freer than one of them alone, unless an administrator accepted this very definition', () => {
    expect(looser(judgeChain)).toBe(false)
  })

  it('would be if only its own pins counted, or only those of the first entry', () => {
    expect(looser((links, live) => judgeChain(links.slice(-1), live))).toBe(true)
    expect(looser((links, live) => judgeChain(links.slice(0, 1), live))).toBe(true)
  })
})
