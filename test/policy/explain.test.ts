import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Rule } from '../../src/contract/rule.ts'
import type { ScopeKey } from '../../src/contract/scope.ts'
import { concerns, decide, explain, type ScopedRules, type Subject } from '../../src/policy/policy.ts'

function rulesOf(scope: ScopeKey, ...rules: object[]): ScopedRules {
  return { scope, rules: rules.map((rule) => Rule.parse(rule)) }
}

const subject: Subject = {
  tool: 'bank_pay',
  server: 'bank',
  risk: 'danger',
  principal: 'agent:shopper',
  arguments: { amount: 250, to: 'ada' },
  now: Date.parse('2026-11-16T12:00:00Z'),
}

it('tells of every scope which rules were looked at, which matched, and what it answers', () => {
  const { decision, scopes } = explain(
    [
      rulesOf(
        'global',
        { tools: 'bank_*', action: 'allow' },
        { tools: 'bank_*', arguments: { '/amount': { min: 100 } }, action: 'ask', name: 'Large sums' },
        { tools: 'files_*', action: 'deny' },
      ),
      rulesOf('agent:shopper', { risk: 'read', action: 'allow' }),
    ],
    subject,
  )
  expect(decision).toMatchObject({ action: 'ask', rule: { scope: 'global', index: 1, name: 'Large sums' } })
  expect(scopes).toEqual([
    {
      scope: 'global',
      action: 'ask',
      rules: [
        { index: 0, action: 'allow', matches: true, decides: false },
        { index: 1, name: 'Large sums', action: 'ask', matches: true, decides: true },
        {
          index: 2,
          action: 'deny',
          matches: false,
          decides: false,
          mismatch: { part: 'tools', because: 'bank_pay does not match files_*' },
        },
      ],
    },
    {
      scope: 'agent:shopper',
      rules: [
        {
          index: 0,
          action: 'allow',
          matches: false,
          decides: false,
          mismatch: { part: 'risk', because: 'the risk is danger, not read' },
        },
      ],
    },
  ])
})

it('tells that a scope which only tightens has allowed something, and that it does not count', () => {
  const allows = { ...rulesOf('project:shop', { action: 'allow' }), onlyTightens: true }
  const { decision, scopes } = explain([allows], subject)
  expect(decision).toMatchObject({ action: 'ask', rule: undefined })
  expect(scopes).toMatchObject([{ scope: 'project:shop', action: 'allow', onlyTightens: true }])
})

describe('the first part that does not fit', () => {
  it.each<[object, string, string]>([
    [{ server: 'shop' }, 'server', 'the server bank does not match shop'],
    [{ principal: 'user:*' }, 'principal', 'agent:shopper does not match user:*'],
    [{ owner: 'kim' }, 'owner', 'the owner (none) does not match kim'],
    [{ project: 'shop' }, 'project', 'the project (none) does not match shop'],
    [{ expires: '2026-11-16T12:00:00Z' }, 'expires', 'the rule expired at 2026-11-16T12:00:00.000Z'],
    [{ arguments: { '/to': 'kim' } }, '/to', '/to must be "kim"'],
    [{ arguments: { '/note': { exists: true } } }, '/note', '/note must exist, but is missing'],
    [
      { arguments: { '/amount': { min: 1, max: 9 } } },
      '/amount',
      '/amount must be a number of at least 1 and be a number of at most 9',
    ],
    [
      { arguments: { '/to': { in: ['kim', 'bo'], not: 'eve' } } },
      '/to',
      '/to must be one of "kim", "bo" and not be "eve"',
    ],
    [{ arguments: { '/to': { glob: ['k*', 'b*'] } } }, '/to', '/to must be text that matches k* or b*'],
    [{ arguments: { '/to': 'ada', '/amount': 1 } }, '/amount', '/amount must be 1'],
    [{ server: 'shop', arguments: { '/amount': 1 } }, 'server', 'the server bank does not match shop'],
  ])('of %j is %s', (fields, part, because) => {
    const { scopes } = explain([rulesOf('global', { ...fields, action: 'deny' })], subject)
    expect(scopes[0]?.rules[0]?.mismatch).toEqual({ part, because })
  })
})

it('says of every scope what decide makes of it, and of every rule what decide makes of it alone', () => {
  const actions = fc.constantFrom('allow', 'ask', 'deny')
  const rules = fc
    .record(
      {
        tools: fc.constantFrom('*', 'bank_*', 'files_*'),
        risk: fc.constantFrom('read', 'danger'),
        arguments: fc.constantFrom({ '/amount': { min: 200 } }, { '/amount': { max: 200 } }, { '/to': 'ada' }),
        expires: fc.constantFrom('2026-11-16T11:00:00Z', '2026-11-16T13:00:00Z'),
        action: actions,
      },
      { requiredKeys: ['action'] },
    )
    .map((rule) => Rule.parse(rule))
  const scopes = fc.tuple(fc.array(rules), fc.array(rules)).map(([first, second]): ScopedRules[] => [
    { scope: 'global', rules: first },
    { scope: 'agent:shopper', rules: second },
  ])
  fc.assert(
    fc.property(scopes, (stated) => {
      const explained = explain(stated, subject)
      expect(explained.decision).toEqual(decide(stated, subject))
      for (const [index, scope] of explained.scopes.entries()) {
        const alone = decide(stated.slice(index, index + 1), subject)
        expect(scope.action).toBe(alone.rule && alone.action)
        expect(scope.rules.find(({ decides }) => decides)?.index).toBe(alone.rule?.index)
        for (const rule of scope.rules) {
          const one = (stated[index]?.rules ?? []).slice(rule.index, rule.index + 1)
          expect(rule.matches).toBe(decide([{ scope: 'global', rules: one }], subject).rule !== undefined)
          expect(rule.mismatch === undefined).toBe(rule.matches)
        }
      }
    }),
    { numRuns: 100 },
  )
})

it('knows whose calls a rule can speak about', () => {
  const who = { principal: 'agent:shopper', owner: 'kim', project: 'shop' } as const
  const isAbout = (fields: object) => concerns(Rule.parse({ ...fields, action: 'deny' }), who)
  expect(isAbout({ tools: 'other_*', risk: 'read', arguments: { '/a': 1 }, expires: '2000-01-01T00:00:00Z' })).toBe(
    true,
  )
  expect(isAbout({ principal: 'agent:*', owner: 'kim', project: 'sh*' })).toBe(true)
  expect(isAbout({ principal: 'agent:other' })).toBe(false)
  expect(isAbout({ owner: 'ada' })).toBe(false)
  expect(isAbout({ project: 'bank' })).toBe(false)
})

it('names the key of `_meta` that does not fit', () => {
  const meta = { '/example.com~1tenant': 'staging' }
  const { scopes } = explain([rulesOf('global', { meta, action: 'allow' })], {
    ...subject,
    meta: { tenant: 'staging' },
  })
  const because = 'meta /example.com~1tenant must be "staging", but is missing'
  expect(scopes[0]?.rules[0]?.mismatch).toEqual({ part: 'meta /example.com~1tenant', because })
  const fits = { ...subject, meta: { 'example.com/tenant': 'staging' } }
  expect(decide([rulesOf('global', { meta, action: 'allow' })], fits).action).toBe('allow')
})
