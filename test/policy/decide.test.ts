import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PrincipalKey } from '../../src/contract/principal.ts'
import type { Risk } from '../../src/contract/risk.ts'
import { Rule, type RuleAction } from '../../src/contract/rule.ts'
import type { ScopeKey } from '../../src/contract/scope.ts'
import { type Answerer, approvalsNeeded, whyNotAnswer } from '../../src/policy/approvers.ts'
import { decide, type ScopedRules, type Subject } from '../../src/policy/policy.ts'

const noon = Date.parse('2026-11-16T12:00:00Z')
const subject: Subject = {
  tool: 'github_merge',
  server: 'github',
  risk: 'write',
  principal: 'agent:reviewer',
  arguments: { repo: 'site', amount: 40, force: false },
  now: noon,
  owner: 'kim',
  project: 'shop',
}

function rulesOf(scope: ScopeKey, ...rules: object[]): ScopedRules {
  return { scope, rules: rules.map((rule) => Rule.parse(rule)) }
}

describe('without a matching rule', () => {
  it.each<[Risk, RuleAction, string]>([
    ['read', 'allow', 'no rule matches; read is allowed'],
    ['write', 'ask', 'no rule matches; write requires approval'],
    ['danger', 'ask', 'no rule matches; danger requires approval'],
  ])('a call of risk %s is answered with %s', (risk, action, because) => {
    const answer = { action, because, rule: undefined, approvers: ['any'] }
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
    ['by owner', { owner: 'k*' }, true],
    ['by another owner', { owner: 'ada' }, false],
    ['by project', { project: 'shop' }, true],
    ['by another project', { project: 'shop-*' }, false],
    ['by an argument', { arguments: { '/repo': 'site' } }, true],
    ['by another value of it', { arguments: { '/repo': 'sit' } }, false],
    ['by several arguments', { arguments: { '/repo': { glob: 's*' }, '/amount': { min: 1, max: 40 } } }, true],
    ['by all but one', { arguments: { '/repo': { glob: 's*' }, '/amount': { max: 39 } } }, false],
    ['until it ends', { expires: '2026-11-16T13:00:01+01:00' }, true],
    ['from its end on no longer', { expires: '2026-11-16T13:00:00+01:00' }, false],
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
      approvers: ['any'],
    })
    expect(decide([rulesOf('global', { name: 'Merging', action: 'allow' })], subject).because).toBe(
      'rule 1 of global "Merging" allows',
    )
    expect(decide([rulesOf('global', { name: 'Merging', action: 'allow' })], subject).rule).toEqual({
      scope: 'global',
      index: 0,
      name: 'Merging',
    })
  })

  it('for an owner or a project never matches whoever has none, not even by *', () => {
    const { owner: _owner, project: _project, ...alone } = subject
    for (const fields of [{ owner: '*' }, { project: '*' }]) {
      expect(decide([rulesOf('global', { ...fields, action: 'deny' })], alone).rule).toBeUndefined()
    }
  })

  it('is prepared for its own place, also where two scopes share one list', () => {
    const { rules } = rulesOf('global', { action: 'deny' })
    const scopesOf = (scope: ScopeKey) => decide([{ scope, rules }], subject).rule?.scope
    expect([scopesOf('global'), scopesOf('agent:a'), scopesOf('global')]).toEqual(['global', 'agent:a', 'global'])
  })
})

describe('who may answer', () => {
  it.each<[string[], string[]]>([
    [['any'], ['any']],
    [['any', 'other'], ['other']],
    [
      ['two', 'any', 'group:leads'],
      ['group:leads', 'two'],
    ],
    [['other', 'other'], ['other']],
  ])('is what every scope that asks demands: %j', (stated, expected) => {
    const scopes = stated.map((approvers, index) => rulesOf(`session:${index}`, { action: 'ask', approvers }))
    expect([...decide(scopes, subject).approvers].sort()).toEqual(expected)
    expect([...decide(scopes.toReversed(), subject).approvers].sort()).toEqual(expected)
  })

  it('is not loosened by a scope that allows, nor tightened by one', () => {
    const asks = rulesOf('global', { action: 'ask', approvers: 'other' })
    const allows = rulesOf('agent:reviewer', { action: 'allow', approvers: 'two' })
    expect(decide([asks, allows], subject)).toMatchObject({ action: 'ask', approvers: ['other'] })
  })
})

describe('a tool whose definition has changed', () => {
  const drifted = { ...subject, drifted: 'another description' }

  it('asks where it would have been allowed, and says why', () => {
    const because = 'the definition of this tool has changed and is not accepted yet: another description'
    expect(decide([rulesOf('global', { action: 'allow' })], drifted)).toMatchObject({ action: 'ask', because })
    expect(decide([], { ...drifted, risk: 'read' })).toMatchObject({ action: 'ask', because, drifted: true })
    expect(decide([], { ...subject, risk: 'read', drifted: '' }).because).toBe(
      'the definition of this tool has changed and is not accepted yet',
    )
  })

  it('stays denied where a rule denies, and asks whom a rule that asks wants asked', () => {
    expect(decide([rulesOf('global', { action: 'deny' })], drifted)).toMatchObject({ action: 'deny' })
    const asks = decide([rulesOf('global', { action: 'ask', approvers: 'two' })], drifted)
    expect(asks).toMatchObject({ action: 'ask', approvers: ['two'], rule: { index: 0 } })
    expect(asks.drifted).toBeUndefined()
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
      owner: fc.constantFrom('*', 'kim'),
      project: fc.constantFrom('shop', 's*'),
      arguments: fc.dictionary(
        fc.constantFrom('/a', '/b/0', '/c'),
        fc.constantFrom('x', 1, { min: 1 }, { glob: 'x*' }, { not: 'x' }, { exists: false }),
        { maxKeys: 2 },
      ),
      expires: fc.constantFrom('2026-11-16T11:00:00Z', '2026-11-16T13:00:00Z'),
      approvers: fc.constantFrom('any', 'client', 'other', 'two', 'group:leads', 'group:ops'),
      action: actions,
    },
    { requiredKeys: ['action'] },
  )
  .map((rule) => Rule.parse(rule))
const scopeKeys = fc.constantFrom<ScopeKey>('global', 'project:shop', 'agent:reviewer', 'session:s')
const scopes = fc.uniqueArray(fc.record({ scope: scopeKeys, rules: fc.array(ruleLike, { maxLength: 4 }) }), {
  selector: ({ scope }) => scope,
})
const values = fc.constantFrom('x', 'xy', 0, 1, null, true, ['x'], [1, 'x'])
const subjects: fc.Arbitrary<Subject> = fc.record({
  tool: fc.constantFrom('github_merge', 'files_read', 'github_search'),
  server: fc.constantFrom('github', 'files'),
  risk: fc.constantFrom<Risk>('read', 'write', 'danger'),
  principal: fc.constantFrom<PrincipalKey>('agent:reviewer', 'agent:other', 'user:kim'),
  arguments: fc.dictionary(fc.constantFrom('a', 'b', 'c'), values),
  now: fc.constantFrom(noon - 3_600_000, noon, noon + 3_600_000),
  owner: fc.constantFrom(undefined, 'kim', 'ada'),
  project: fc.constantFrom(undefined, 'shop'),
  drifted: fc.constantFrom(undefined, 'changed'),
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
  if (answers.includes('ask') || asked.drifted !== undefined) return 'ask'
  if (answers.includes('allow')) return 'allow'
  return asked.risk === 'read' ? 'allow' : 'ask'
}

it('decides by the last match within a scope and by the strictest scope', () => {
  fc.assert(
    fc.property(scopes, subjects, (stated, asked) => {
      expect(decide(stated, asked).action).toBe(expected(stated, asked))
    }),
    { numRuns: 200 },
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
      if (theirs.action === 'ask' && together.action === 'ask' && theirs.rule) {
        const demands = theirs.approvers.filter((approvers) => approvers !== 'any' && approvers !== 'client')
        expect(together.approvers).toEqual(expect.arrayContaining(demands))
        // Whoever sits at the agent answers only where every scope says so.
        expect(together.approvers.includes('client') && !theirs.approvers.includes('client')).toBe(false)
      }
    }),
    { numRuns: 200 },
  )
})

it('never counts a rule that has ended', () => {
  fc.assert(
    fc.property(scopes, subjects, (stated, asked) => {
      const living = stated.map(({ scope, rules }) => ({
        scope,
        rules: rules.filter(({ expires }) => expires === undefined || Date.parse(expires) > asked.now),
      }))
      expect(decide(stated, asked).action).toBe(decide(living, asked).action)
    }),
    { numRuns: 200 },
  )
})

it('takes what others than administrators allow for no objection, and for no permission', () => {
  const owned = (...rules: object[]): ScopedRules => ({ ...rulesOf('project:shop', ...rules), onlyTightens: true })
  const actionOf = (...scopes: ScopedRules[]) => decide(scopes, subject).action
  expect(actionOf(owned({ action: 'allow' }))).toBe('ask')
  expect(actionOf(owned({ action: 'deny' }, { tools: 'github_*', action: 'allow' }))).toBe('ask')
  expect(actionOf(owned({ action: 'deny' }))).toBe('deny')
  expect(actionOf(rulesOf('global', { action: 'allow' }), owned({ action: 'allow' }))).toBe('allow')
  expect(actionOf(rulesOf('global', { action: 'allow' }), owned({ action: 'ask' }))).toBe('ask')
})

describe('a scope that others than administrators write', () => {
  const people: readonly Answerer[] = (['administrator', 'member'] as const).flatMap((role) =>
    ['kim', 'ada'].flatMap((name) =>
      [[], ['leads'], ['leads', 'ops']].map((groups) => ({ name: `${name}`, role, groups })),
    ),
  )

  /** Who may approve a call alone: people, and the program of the agent itself. */
  function answerersOf(approvers: readonly string[], owner: string | undefined): Set<string> {
    if (approvalsNeeded(approvers) > 1) return new Set()
    const able = people.filter((person) => whyNotAnswer(person, { owner, approvers, approved: [] }) === undefined)
    const names = able.map(({ name, role, groups }) => `${name} ${role} ${groups}`)
    return new Set([...names, ...(approvers.includes('client') ? ['the agent'] : [])])
  }

  type Decide = typeof decide

  /** Whether a way of deciding lets such a scope give anybody an answer that they would not have without it. */
  function relaxes(decideWith: Decide): boolean {
    return fc.check(
      fc.property(scopes, fc.array(ruleLike), subjects, (stated, rules, asked) => {
        const others = stated.filter(({ scope }) => scope !== 'project:shop')
        const before = decideWith(others, asked)
        const after = decideWith([...others, { scope: 'project:shop', rules, onlyTightens: true }], asked)
        if (strictness[after.action] < strictness[before.action]) return false
        if (after.action !== 'ask') return true
        const without = before.action === 'ask' ? before.approvers : ['any']
        const able = answerersOf(without, asked.owner)
        return [...answerersOf(after.approvers, asked.owner)].every((each) => able.has(each))
      }),
      { numRuns: 1000, seed: 11 },
    ).failed
  }

  it('gives nobody a right to answer that they would not have without it', () => {
    expect(relaxes(decide)).toBe(false)
  })

  it('would if its rules counted like those of administrators', () => {
    const trusting: Decide = (stated, asked) =>
      decide(
        stated.map(({ scope, rules }) => ({ scope, rules })),
        asked,
      )
    expect(relaxes(trusting)).toBe(true)
  })

  it('adds to what others demand', () => {
    const owned = (approvers: string): ScopedRules => ({
      ...rulesOf('project:shop', { action: 'ask', approvers }),
      onlyTightens: true,
    })
    const demanded = (...stated: ScopedRules[]) => [...decide(stated, subject).approvers].sort()
    expect(demanded(owned('client'))).toEqual(['any'])
    expect(demanded(owned('two'))).toEqual(['two'])
    expect(demanded(owned('group:leads'))).toEqual(['group:leads', 'owner'])
    const global = (approvers: string) => rulesOf('global', { action: 'ask', approvers })
    expect(demanded(global('client'), owned('client'))).toEqual(['any'])
    expect(demanded(global('other'), owned('client'))).toEqual(['other'])
    expect(demanded(global('group:ops'), owned('group:leads'))).toEqual(['group:leads', 'group:ops'])
  })
})
