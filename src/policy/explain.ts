import type { Rule, RuleAction } from '../contract/rule.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { conditionInWords, findValue } from './conditions.ts'
import { type Decision, decide, findMismatch, type ScopedRules, type Subject } from './decide.ts'
import { type PreparedRule, prepareRules } from './prepare.ts'

/** Whether one rule matches a call, and why not. */
export type LookedAt = {
  readonly index: number
  readonly name?: string
  readonly action: RuleAction
  readonly matches: boolean
  /** The rule is the last match of its scope. */
  readonly decides: boolean
  /** The first part that does not match, with the reason. */
  readonly mismatch?: { readonly part: string; readonly because: string }
}

export type ScopeExplanation = {
  readonly scope: ScopeKey
  /** The action of this scope; undefined if none of its rules matches. */
  readonly action?: RuleAction
  /** The scope has writers who are not administrators: its `allow` rules are ignored. */
  readonly onlyTightens?: boolean
  readonly rules: readonly LookedAt[]
}

export type Explanation = { readonly decision: Decision; readonly scopes: readonly ScopeExplanation[] }

/** The same decision as `decide`, with the result of every rule. */
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
  if (part === 'tools') return `${subject.tool} does not match ${rule.tools.join(' or ')}`
  if (part === 'server') return `the server ${subject.server} does not match ${rule.server}`
  if (part === 'risk') return `the risk is ${subject.risk}, not ${rule.risks?.join(' or ')}`
  if (part === 'principal') return `${subject.principal} does not match ${rule.principal}`
  if (part === 'owner') return `the owner ${subject.owner ?? '(none)'} does not match ${rule.owner}`
  if (part === 'project') return `the project ${subject.project ?? '(none)'} does not match ${rule.project}`
  if (part === 'expires') return `the rule expired at ${new Date(rule.expiresAt).toISOString()}`
  const isMeta = part.startsWith('meta ')
  const [conditions, given] = isMeta ? [rule.meta, subject.meta ?? {}] : [rule.conditions, subject.arguments]
  const condition = conditions.find(({ pointer }) => pointer === (isMeta ? part.slice('meta '.length) : part))
  if (condition === undefined) return `${part} does not match`
  const there = findValue(given, condition.path) !== undefined
  return `${part} must ${conditionInWords(condition)}${there ? '' : ', but is missing'}`
}

/** Whether a rule can match any call of this principal, owner and project. */
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
