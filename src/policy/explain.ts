import type { Rule, RuleAction } from '../contract/rule.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { conditionInWords, findValue } from './conditions.ts'
import { type Decision, decide, findMismatch, type ScopedRules, type Subject } from './decide.ts'
import { type PreparedRule, prepareRules } from './prepare.ts'

/** How one rule stood to one call. */
export type LookedAt = {
  readonly index: number
  readonly name?: string
  readonly action: RuleAction
  readonly matches: boolean
  /** The last match of its scope. */
  readonly decides: boolean
  /** The first part that does not fit, and why, in words. */
  readonly mismatch?: { readonly part: string; readonly because: string }
}

export type ScopeExplanation = {
  readonly scope: ScopeKey
  /** What this scope says; none when no rule of it matches. */
  readonly action?: RuleAction
  /** What it allows loosens nothing: others than administrators write its rules. */
  readonly onlyTightens?: boolean
  readonly rules: readonly LookedAt[]
}

export type Explanation = { readonly decision: Decision; readonly scopes: readonly ScopeExplanation[] }

/** The same judgement as `decide`, with everything that was looked at on the way. */
export function explain(scopes: readonly ScopedRules[], subject: Subject): Explanation {
  return { decision: decide(scopes, subject), scopes: scopes.map((scoped) => explainScope(scoped, subject)) }
}

function explainScope({ scope, rules, onlyTightens }: ScopedRules, subject: Subject): ScopeExplanation {
  const prepared = prepareRules(scope, rules)
  const mismatches = prepared.map((rule) => findMismatch(rule, subject))
  const decides = mismatches.lastIndexOf(undefined)
  const action = prepared[decides]?.answer.action
  return {
    scope,
    ...(action !== undefined && { action }),
    ...(onlyTightens && { onlyTightens }),
    rules: prepared.map((rule, index) => toLookedAt(rule, subject, { index, decides, mismatch: mismatches[index] })),
  }
}

type Found = { readonly index: number; readonly decides: number; readonly mismatch: string | undefined }

function toLookedAt(rule: PreparedRule, subject: Subject, { index, decides, mismatch }: Found): LookedAt {
  const { action, rule: place } = rule.answer
  return {
    index,
    ...(place.name !== undefined && { name: place.name }),
    action,
    matches: mismatch === undefined,
    decides: index === decides,
    ...(mismatch !== undefined && { mismatch: { part: mismatch, because: mismatchInWords(rule, subject, mismatch) } }),
  }
}

function mismatchInWords(rule: PreparedRule, subject: Subject, part: string): string {
  if (part === 'tools') return `${subject.tool} is not like ${rule.tools.join(' or ')}`
  if (part === 'server') return `the server ${subject.server} is not like ${rule.server}`
  if (part === 'risk') return `the risk is ${subject.risk}, not ${rule.risks?.join(' or ')}`
  if (part === 'principal') return `${subject.principal} is not like ${rule.principal}`
  if (part === 'owner') return `${subject.owner ?? 'nobody'} is not like the owner ${rule.owner}`
  if (part === 'project') return `${subject.project ?? 'no project'} is not like the project ${rule.project}`
  if (part === 'expires') return `it ended on ${new Date(rule.expiresAt).toISOString()}`
  const isMeta = part.startsWith('meta ')
  const [conditions, given] = isMeta ? [rule.meta, subject.meta ?? {}] : [rule.conditions, subject.arguments]
  const condition = conditions.find(({ pointer }) => pointer === (isMeta ? part.slice('meta '.length) : part))
  if (condition === undefined) return `${part} does not fit`
  const there = findValue(given, condition.path) !== undefined
  return `${part} must ${conditionInWords(condition)}${there ? '' : ', and is not there'}`
}

/** Whether a rule can speak about somebody's calls at all, whatever they call. */
export function concerns(rule: Rule, who: Pick<Subject, 'principal' | 'owner' | 'project'>): boolean {
  const [prepared] = prepareRules('global', [
    { action: rule.action, approvers: rule.approvers, tools: '*', ...whoOf(rule) },
  ])
  const subject = { ...who, tool: '', server: '', risk: 'read', arguments: {}, now: 0 } as const
  return prepared !== undefined && findMismatch(prepared, subject) === undefined
}

function whoOf({ principal, owner, project }: Rule): Pick<Rule, 'principal' | 'owner' | 'project'> {
  return { principal, owner, project }
}
