/** A person who wants to answer, as they are at this moment. */
export type Answerer = {
  readonly name: string
  readonly role: 'administrator' | 'member' | 'auditor'
  readonly groups: readonly string[]
}

export type Answerable = {
  /** The user behind the agent that asks. */
  readonly owner?: string | undefined
  /** Everyone named here must agree; `any` stands alone. `owner` gives the groups beside it no right of their own. */
  readonly approvers: readonly string[]
  /** The names of those who have approved so far. */
  readonly approved: readonly string[]
}

/** Why this person may not answer, in words; undefined if they may. */
export function whyNotAnswer(person: Answerer, question: Answerable): string | undefined {
  const { owner, approvers, approved } = question
  if (person.role === 'auditor') return 'auditors change nothing'
  if (approved.includes(person.name)) return 'you have approved it already; it needs somebody else as well'
  if (approvers.includes('other') && person.name === owner)
    return 'the rule wants somebody else than the owner of the agent'
  const groups = approvers.filter((each) => each.startsWith('group:')).map((each) => each.slice('group:'.length))
  const missing = groups.find((group) => !person.groups.includes(group))
  if (missing !== undefined) return `the rule wants somebody of the group ${missing}`
  const mayByGroup = groups.length > 0 && !approvers.includes('owner')
  if (person.role === 'administrator' || person.name === owner || mayByGroup) return undefined
  return 'this is for the owner of the agent and for administrators'
}

/** Whether a grant may stand for the answer: it is the word of one person, and counts only where that alone would now. */
export function countsFor(giver: Answerer | undefined, { owner, approvers }: Omit<Answerable, 'approved'>): boolean {
  if (approvalsNeeded(approvers) > 1) return false
  return giver !== undefined && whyNotAnswer(giver, { owner, approvers, approved: [] }) === undefined
}

/** How many different people have to approve. */
export function approvalsNeeded(approvers: readonly string[]): number {
  return approvers.includes('two') ? 2 : 1
}
