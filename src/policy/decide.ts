import type { JsonObject } from '../contract/json.ts'
import type { PrincipalKey } from '../contract/principal.ts'
import type { Risk } from '../contract/risk.ts'
import type { Rule, RuleAction } from '../contract/rule.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { matchesAny, matchesGlob } from '../lib/glob.ts'
import { fulfils } from './conditions.ts'
import { type PreparedRule, prepareRules, type ScopeAnswer } from './prepare.ts'

export type ScopedRules = {
  readonly scope: ScopeKey
  readonly rules: readonly Rule[]
  /** The scope has writers who are not administrators: its `allow` rules are ignored. */
  readonly onlyTightens?: boolean | undefined
}

/** The properties of a call that rules can match. */
export type Subject = {
  readonly tool: string
  readonly server: string
  readonly risk: Risk
  readonly principal: PrincipalKey
  readonly arguments: JsonObject
  /** The caller's `_meta` that is sent, including the trace context. */
  readonly meta?: JsonObject | undefined
  /** Milliseconds since 1970, for rules that expire. */
  readonly now: number
  /** The owner and the project of the principal. */
  readonly owner?: string | undefined
  readonly project?: string | undefined
  /** How the tool's definition differs from the accepted one, in words. */
  readonly drifted?: string | undefined
}

export type Decision = {
  readonly action: RuleAction
  /** The reason of the decision, in words. */
  readonly because: string
  readonly rule: ScopeAnswer['rule'] | undefined
  /** The required approvers if the action is `ask`: all of them. `any` is always the only entry. */
  readonly approvers: readonly string[]
  /** No rule can allow the call until a person has accepted the current definition of the tool. */
  readonly drifted?: true
}

const strictness: Readonly<Record<RuleAction, number>> = { allow: 0, ask: 1, deny: 2 }

/** Within a scope the last matching rule decides. Across scopes the strictest action wins. Without a match, reads run. */
export function decide(scopes: readonly ScopedRules[], subject: Subject): Decision {
  let strictest: Decision | undefined
  let demands: readonly string[] | undefined
  for (const { scope, rules, onlyTightens } of scopes) {
    const rule = lastMatch(prepareRules(scope, rules), subject)
    if (!rule || (onlyTightens && rule.answer.action === 'allow')) continue
    const answer = onlyTightens ? rule.tightening : rule.answer
    strictest = strictest ? stricter(strictest, answer) : answer
    if (subject.drifted !== undefined) demands = demands ? joinApprovers(demands, answer.approvers) : answer.approvers
  }
  const decision = strictest ?? withoutRule(subject.risk)
  if (subject.drifted === undefined || decision.action === 'deny') return decision
  return afterDrift({ ...decision, approvers: demands ?? decision.approvers }, subject.drifted)
}

/** If both scopes require approval, the requirements for approvers are combined. */
function stricter(a: Decision, b: Decision): Decision {
  if (strictness[a.action] > strictness[b.action]) return a
  if (strictness[a.action] < strictness[b.action]) return b
  const approvers = joinApprovers(a.approvers, b.approvers)
  return approvers === a.approvers ? a : { ...a, approvers }
}

/** `client` is the loosest and only stays if both scopes have it. */
function joinApprovers(a: readonly string[], b: readonly string[]): readonly string[] {
  const isByRight = givesRight(a) || givesRight(b)
  const isDemand = (each: string) => each !== 'any' && each !== 'client' && !(each === 'owner' && isByRight)
  const demands = [...new Set([...a, ...b])].filter(isDemand)
  if (demands.length > 0) return demands.length === a.length && demands.every((each) => a.includes(each)) ? a : demands
  return a.includes('client') && b.includes('client') ? a : anyApprover
}

/** A group named by administrators may answer approvals for agents of other owners. */
function givesRight(approvers: readonly string[]): boolean {
  return !approvers.includes('owner') && approvers.some((each) => each.startsWith('group:'))
}

export function lastMatch(rules: readonly PreparedRule[], subject: Subject): PreparedRule | undefined {
  for (let index = rules.length - 1; index >= 0; index--) {
    const rule = rules[index]
    if (rule && findMismatch(rule, subject) === undefined) return rule
  }
  return undefined
}

/**
 * The first part of a rule that does not match, by its key or by the pointer of a condition; undefined for a rule that
 * matches. Conditions are checked last, because they are the most expensive.
 */
export function findMismatch(rule: PreparedRule, subject: Subject): string | undefined {
  if (rule.risks !== undefined && !rule.risks.includes(subject.risk)) return 'risk'
  if (!matchesAny(rule.tools, subject.tool)) return 'tools'
  if (rule.server !== undefined && !matchesGlob(rule.server, subject.server)) return 'server'
  if (rule.principal !== undefined && !matchesGlob(rule.principal, subject.principal)) return 'principal'
  if (rule.owner !== undefined && !matchesName(rule.owner, subject.owner)) return 'owner'
  if (rule.project !== undefined && !matchesName(rule.project, subject.project)) return 'project'
  if (rule.expiresAt <= subject.now) return 'expires'
  for (const condition of rule.conditions) if (!fulfils(condition, subject.arguments)) return condition.pointer
  for (const condition of rule.meta) if (!fulfils(condition, subject.meta ?? noMeta)) return `meta ${condition.pointer}`
  return undefined
}

const noMeta: JsonObject = {}

/** A missing owner or project does not match any pattern, not even `*`. */
function matchesName(pattern: string, name: string | undefined): boolean {
  return name !== undefined && matchesGlob(pattern, name)
}

const anyApprover: readonly string[] = ['any']

const answers: Readonly<Record<Risk, Decision>> = {
  read: { action: 'allow', because: 'no rule matches; read is allowed', rule: undefined, approvers: anyApprover },
  write: {
    action: 'ask',
    because: 'no rule matches; write requires approval',
    rule: undefined,
    approvers: anyApprover,
  },
  danger: {
    action: 'ask',
    because: 'no rule matches; danger requires approval',
    rule: undefined,
    approvers: anyApprover,
  },
}

function withoutRule(risk: Risk): Decision {
  return answers[risk]
}

/** After drift, an allowed call requires approval too. The approvers of the rule apply. */
function afterDrift(decision: Decision, drifted: string): Decision {
  if (decision.action === 'ask') return decision
  const { rule, approvers } = decision
  const what = drifted === '' ? '' : `: ${drifted}`
  const because = `the definition of this tool has changed and is not accepted yet${what}`
  return { action: 'ask', because, rule, approvers, drifted: true }
}
