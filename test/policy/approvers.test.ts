import { expect, it } from 'vitest'
import { type Answerable, type Answerer, approvalsNeeded, countsFor, whyNotAnswer } from '../../src/policy/approvers.ts'

const mara: Answerer = { name: 'mara', role: 'member', groups: ['ops'] }
const root: Answerer = { name: 'root', role: 'administrator', groups: [] }
const asked: Answerable = { owner: 'mara', approvers: ['any'], approved: [] }

it.each<[string, Answerer, Partial<Answerable>, boolean]>([
  ['the owner of the agent', mara, {}, true],
  ['an administrator', root, {}, true],
  ['a member whose agent it is not', mara, { owner: 'nils' }, false],
  ['a member, of an agent that nobody owns', mara, { owner: undefined }, false],
  ['an auditor, even of an own agent', { ...mara, role: 'auditor' }, {}, false],
  ['the owner, where the rule wants somebody else', mara, { approvers: ['other'] }, false],
  [
    'an administrator who is the owner, where the rule wants somebody else',
    { ...root, name: 'mara' },
    { approvers: ['other'] },
    false,
  ],
  ['another administrator, where the rule wants somebody else', root, { approvers: ['other'] }, true],
  ['a member of the named group', mara, { owner: 'nils', approvers: ['group:ops'] }, true],
  ['an administrator who is not of the named group', root, { approvers: ['group:ops'] }, false],
  ['the owner who is of the group, where both are wanted', mara, { approvers: ['other', 'group:ops'] }, false],
  [
    'somebody of one group where two are wanted',
    mara,
    { owner: 'nils', approvers: ['group:ops', 'group:legal'] },
    false,
  ],
  ['the second of two people', root, { approvers: ['two'], approved: ['mara'] }, true],
  ['the first of two people again', mara, { approvers: ['two'], approved: ['mara'] }, false],
])('%s', (_, person, approval, may) => {
  expect(whyNotAnswer(person, { ...asked, ...approval }) === undefined).toBe(may)
})

it('wants two people where a rule says so, and one anywhere else', () => {
  expect([['any'], ['other'], ['two'], ['group:ops', 'two']].map(approvalsNeeded)).toEqual([1, 1, 2, 2])
})

it.each<[string, Answerer | undefined, readonly string[], boolean]>([
  ['of the owner, where anybody may answer', mara, ['any'], true],
  ['of somebody who has left, where anybody may answer', undefined, ['any'], false],
  ['of the owner, where somebody at the agent may answer', mara, ['client'], true],
  ['of the owner, where the rule wants somebody else', mara, ['other'], false],
  ['of an administrator, where the rule wants somebody else than the owner', root, ['other'], true],
  ['of somebody who has left, where the rule wants somebody else', undefined, ['other'], false],
  ['of somebody of the named group', mara, ['group:ops'], true],
  ['of an administrator who is not of the named group', root, ['group:ops'], false],
  ['of anybody, where the rule wants two people', root, ['two'], false],
])('a grant %s', (_, giver, approvers, counts) => {
  expect(countsFor(giver, { owner: 'mara', approvers })).toBe(counts)
})
