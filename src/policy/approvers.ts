/** A person who wants to answer an approval, with the current role and groups. */
export type Answerer = {
  readonly name: string
  readonly role: 'administrator' | 'member' | 'auditor'
  readonly groups: readonly string[]
}

export type Answerable = {
  /** The owner of the calling agent. */
  readonly owner?: string | undefined
  /** All entries must be satisfied; `any` is always the only entry. With `owner`, groups alone give no right to answer. */
  readonly approvers: readonly string[]
  /** Names of the people who have already approved. */
  readonly approved: readonly string[]
}

/** The reason why this person may not answer; undefined if they may. */
export function whyNotAnswer(person: Answerer, approval: Answerable): string | undefined {
  const { owner, approvers, approved } = approval
  if (person.role === 'auditor') return 'auditors cannot answer approvals'
  if (approved.includes(person.name)) return 'you have already approved it; a second person must approve it too'
  if (approvers.includes('other') && person.name === owner)
    return 'the rule requires a person other than the owner of the agent'
  const groups = approvers.filter((each) => each.startsWith('group:')).map((each) => each.slice('group:'.length))
  const missing = groups.find((group) => !person.groups.includes(group))
  if (missing !== undefined) return `the rule requires a member of the group ${missing}`
  const mayByGroup = groups.length > 0 && !approvers.includes('owner')
  if (person.role === 'administrator' || person.name === owner || mayByGroup) return undefined
  return 'only the owner of the agent and administrators can answer it'
}

/** Whether a grant can replace the approval: only if its giver alone could approve the call now. */
export function countsFor(giver: Answerer | undefined, { owner, approvers }: Omit<Answerable, 'approved'>): boolean {
  if (approvalsNeeded(approvers) > 1) return false
  return giver !== undefined && whyNotAnswer(giver, { owner, approvers, approved: [] }) === undefined
}

/** The number of different people who must approve. */
export function approvalsNeeded(approvers: readonly string[]): number {
  return approvers.includes('two') ? 2 : 1
}
