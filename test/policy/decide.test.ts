import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PrincipalKey } from '../../src/contract/principal.ts'
import type { Risk } from '../../src/contract/risk.ts'
import { Rule, type RuleAction } from '../../src/contract/rule.ts'
import type { ScopeKey } from '../../src/contract/scope.ts'
import { decide, type ScopedRules, type Subject } from '../../src/policy/policy.ts'

const subject: Subject = { tool: 'github_merge', server: 'github', risk: 'write', principal: 'agent:reviewer' }

function rulesOf(scope: ScopeKey, ...rules: object[]): ScopedRules {
  return { scope, rules: rules.map((rule) => Rule.parse(rule)) }
}

describe('without a matching rule', () => {
  it.each<[Risk, RuleAction, string]>([
    ['read', 'allow', 'no rule matches; reading is allowed'],
    ['write', 'ask', 'no rule matches; write asks'],
    ['danger', 'ask', 'no rule matches; danger asks'],
  ])('a call of risk %s is answered with %s', (risk, action, because) => {
    const answer = { action, because, rule: undefined }
    expect(decide([], { ...subject, risk })).toEqual(answer)
    expect(decide([rulesOf('global', { tools: 'other_*', action: 'deny' })], { ...subject, risk })).toEqual(answer)
  })
})

describe('a rule', () => {
  it.each<[string, object, boolean]>([
    ['for all tools', {}, true],
    ['by a glob', { tools: 'github_*' }, true],
    ['by one glob of a list', { tools: ['files_*', '*_merge'] }, true],
    ['by none of a list', { tools: ['files_*', 'merge'] }, false],
    ['by server', { server: 'git*' }, true],
    ['by another server', { server: 'gitlab' }, false],
    ['by risk', { risk: 'write' }, true],
    ['by a list of risks', { risk: ['write', 'danger'] }, true],
    ['by another risk', { risk: ['read', 'danger'] }, false],
    ['by principal', { principal: 'agent:*' }, true],
    ['by another principal', { principal: 'agent:review' }, false],
    ['by everything at once', { tools: '*_merge', server: 'github', risk: 'write', principal: 'agent:reviewer' }, true],
    ['by everything but one', { tools: '*_merge', server: 'github', risk: 'write', principal: 'user:*' }, false],
  ])('matches %s', (_, fields, matches) => {
    const { action } = decide([rulesOf('global', { ...fields, action: 'deny' })], subject)
    expect(action).toBe(matches ? 'deny' : 'ask')
  })

  it('is named with its place, its name and its reason', () => {
    const rules = rulesOf(
      'agent:reviewer',
      { action: 'allow' },
      { tools: ['a', '*_merge'], action: 'deny', reason: 'by hand' },
    )
    expect(decide([rules], subject)).toEqual({
      action: 'deny',
      because: 'rule 2 of agent:reviewer "a, *_merge" denies (by hand)',
      rule: { scope: 'agent:reviewer', index: 1 },
    })
    expect(decide([rulesOf('global', { name: 'Merging', action: 'allow' })], subject).because).toBe(
      'rule 1 of global "Merging" allows',
    )
  })
})

it('lets the last matching rule of a scope decide', () => {
  const general = { risk: 'write', action: 'allow' }
  const exception = { tools: '*_merge', action: 'deny' }
  expect(decide([rulesOf('global', general, exception)], subject).action).toBe('deny')
  expect(decide([rulesOf('global', exception, general)], subject).action).toBe('allow')
})

it.each<[RuleAction, RuleAction, RuleAction]>([
  ['allow', 'allow', 'allow'],
  ['allow', 'ask', 'ask'],
  ['allow', 'deny', 'deny'],
  ['ask', 'allow', 'ask'],
  ['ask', 'deny', 'deny'],
  ['deny', 'allow', 'deny'],
])('takes the stricter of %s and %s from two scopes', (first, second, expected) => {
  const scopes = [rulesOf('global', { action: first }), rulesOf('agent:reviewer', { action: second })]
  expect(decide(scopes, subject).action).toBe(expected)
})

const strictness: Record<RuleAction, number> = { allow: 0, ask: 1, deny: 2 }
const actions = fc.constantFrom<RuleAction>('allow', 'ask', 'deny')
const globs = fc.constantFrom('*', 'github_*', '*_merge', 'files_*', 'github_merge', '')
const ruleLike = fc
  .record(
    {
      tools: fc.oneof(globs, fc.array(globs, { minLength: 1, maxLength: 2 })),
      server: fc.constantFrom('*', 'github', 'files'),
      risk: fc.constantFrom<Risk | Risk[]>('read', 'write', 'danger', ['read', 'write']),
      principal: fc.constantFrom('*', 'agent:*', 'agent:reviewer', 'user:*'),
      action: actions,
    },
    { requiredKeys: ['action'] },
  )
  .map((rule) => Rule.parse(rule))
const scopeKeys = fc.constantFrom<ScopeKey>('global', 'project:shop', 'agent:reviewer', 'session:s')
const scopes = fc.uniqueArray(fc.record({ scope: scopeKeys, rules: fc.array(ruleLike, { maxLength: 4 }) }), {
  selector: ({ scope }) => scope,
})
const subjects = fc.record<Subject>({
  tool: fc.constantFrom('github_merge', 'files_read', 'github_search'),
  server: fc.constantFrom('github', 'files'),
  risk: fc.constantFrom<Risk>('read', 'write', 'danger'),
  principal: fc.constantFrom<PrincipalKey>('agent:reviewer', 'agent:other', 'user:kim'),
})

/** The same judgement, written the long way round. */
function expected(stated: readonly ScopedRules[], asked: Subject): RuleAction {
  const answers: RuleAction[] = []
  for (const { scope, rules } of stated) {
    let answer: RuleAction | undefined
    for (const rule of rules) {
      const alone = decide([{ scope, rules: [rule] }], asked)
      if (alone.rule) answer = alone.action
    }
    if (answer) answers.push(answer)
  }
  if (answers.includes('deny')) return 'deny'
  if (answers.includes('ask')) return 'ask'
  if (answers.includes('allow')) return 'allow'
  return asked.risk === 'read' ? 'allow' : 'ask'
}

it('decides by the last match within a scope and by the strictest scope', () => {
  fc.assert(
    fc.property(scopes, subjects, (stated, asked) => {
      expect(decide(stated, asked).action).toBe(expected(stated, asked))
    }),
    { numRuns: 2000 },
  )
})

it('decides the same every time, in whatever order the scopes come, and changes nothing', () => {
  fc.assert(
    fc.property(scopes, subjects, (stated, asked) => {
      const before = JSON.stringify([stated, asked])
      const { action } = decide(stated, asked)
      expect(decide(stated, asked)).toEqual(decide(stated, asked))
      expect(decide(stated.toReversed(), asked).action).toBe(action)
      expect(JSON.stringify([stated, asked])).toBe(before)
    }),
  )
})

it('never lets one scope loosen what another says', () => {
  fc.assert(
    fc.property(scopes, scopeKeys, fc.array(ruleLike), subjects, (stated, scope, rules, asked) => {
      const others = stated.filter((other) => other.scope !== scope)
      const theirs = decide(others, asked)
      const together = decide([...others, { scope, rules }], asked)
      if (theirs.rule) expect(strictness[together.action]).toBeGreaterThanOrEqual(strictness[theirs.action])
    }),
    { numRuns: 2000 },
  )
})
