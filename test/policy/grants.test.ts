import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Grant } from '../../src/contract/grant.ts'
import { hashOf } from '../../src/policy/call-hash.ts'
import { findGrants, type Grantee } from '../../src/policy/grants.ts'

const now = Date.parse('2030-01-01T12:00:00Z')

const grant: Grant = {
  id: 'grant_1',
  tools: 'github_merge',
  principal: 'agent:reviewer',
  budget: 5,
  used: 0,
  expiresAt: '2030-01-01T18:00:00Z',
  givenBy: 'user:mara',
  givenAt: '2030-01-01T11:00:00Z',
}

const call: Grantee = {
  tool: 'github_merge',
  server: 'github',
  risk: 'write',
  principal: 'agent:reviewer',
  principalId: 'agent-reviewer',
  arguments: { repository: 'acme/shop', number: 481 },
  now,
  definition: 'one',
  scopes: ['global', 'project:shop', 'agent:reviewer'],
}

it.each<[string, Partial<Grant>, Partial<Grantee>, boolean]>([
  ['the tool and agent that it names', {}, {}, true],
  ['another agent', {}, { principal: 'agent:other' }, false],
  ['another tool', {}, { tool: 'github_close' }, false],
  ['a tool by a glob', { tools: 'github_*' }, {}, true],
  ['danger by a glob', { tools: 'github_*' }, { risk: 'danger' }, false],
  ['danger by its own name', {}, { risk: 'danger' }, true],
  ['everybody of a project', { principal: undefined, scope: 'project:shop' }, {}, true],
  ['somebody outside of the project', { principal: undefined, scope: 'project:shop' }, { scopes: ['global'] }, false],
  ['an agent outside of the project, where both are named', { scope: 'project:other' }, {}, false],
  ['nobody, if it names nobody', { principal: undefined }, {}, false],
  ['arguments that fit', { arguments: { '/repository': 'acme/shop' } }, {}, true],
  ['arguments that do not fit', { arguments: { '/repository': 'acme/other' } }, {}, false],
  ['a call without the argument', { arguments: { '/repository': 'acme/shop' } }, { arguments: {} }, false],
  ['exactly these arguments', { exactly: hashOf({ number: 481, repository: 'acme/shop' }) }, {}, true],
  [
    'one argument more',
    { exactly: hashOf({ number: 481, repository: 'acme/shop' }) },
    { arguments: { ...call.arguments, force: true } },
    false,
  ],
  ['a call with `_meta` that it does not name', {}, { bound: { tenant: 1 } }, false],
  ['exactly this `_meta`', { meta: hashOf({ a: 1, b: 2 }) }, { bound: { b: 2, a: 1 } }, true],
  ['another `_meta`', { meta: hashOf({ tenant: 1 }) }, { bound: { tenant: 2 } }, false],
  ['a call without the `_meta` that it names', { meta: hashOf({ tenant: 1 }) }, {}, false],
  ["answers to a server's own questions", {}, { bringsAnswers: true }, false],
  ['a grant that was used up', { used: 5 }, {}, false],
  ['a grant that was revoked', { revokedAt: '2030-01-01T11:30:00Z' }, {}, false],
  ['a grant that ends this moment', { expiresAt: '2030-01-01T12:00:00Z' }, {}, false],
  ['a tool that is as it was then', { definitions: { github_merge: 'one' } }, {}, true],
  ['a tool that was changed since', { definitions: { github_merge: 'older' } }, {}, false],
  ['a tool whose change nobody has accepted', {}, { drifted: 'the description' }, false],
])('permits or not: %s', (_, granted, called, permits) => {
  expect(findGrants([{ ...grant, ...granted }], { ...call, ...called })).toHaveLength(permits ? 1 : 0)
})

it('spends first what ends first', () => {
  const late = { ...grant, id: 'late', expiresAt: '2030-01-02T00:00:00Z' }
  expect(findGrants([late, grant], call).map(({ id }) => id)).toEqual(['grant_1', 'late'])
})

it('never permits more by one more condition', () => {
  const value = fc.oneof(fc.string(), fc.integer(), fc.boolean())
  const given = fc.dictionary(fc.string({ minLength: 1 }), value, { maxKeys: 5 })
  fc.assert(
    fc.property(given, fc.stringMatching(/^\/[a-z]{1,3}$/), value, (args, pointer, wanted) => {
      const wide = findGrants([grant], { ...call, arguments: args }).length
      const narrow = findGrants([{ ...grant, arguments: { [pointer]: wanted } }], { ...call, arguments: args }).length
      expect(narrow).toBeLessThanOrEqual(wide)
    }),
    { numRuns: 200 },
  )
})
