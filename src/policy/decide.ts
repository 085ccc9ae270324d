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
  /** Others than administrators write there: what they allow is no objection, and no permission either. */
  readonly onlyTightens?: boolean | undefined
}

/** What rules look at. */
export type Subject = {
  readonly tool: string
  readonly server: string
  readonly risk: Risk
  readonly principal: PrincipalKey
  readonly arguments: JsonObject
  /** All of the caller's `_meta` that is sent, trace context included. */
  readonly meta?: JsonObject | undefined
  /** Milliseconds since 1970: rules may have an end. */
  readonly now: number
  /** The user behind the principal, and the project it works for. */
  readonly owner?: string | undefined
  readonly project?: string | undefined
  /** What is new about the tool's definition that nobody has accepted yet, in words. */
  readonly drifted?: string | undefined
}

export type Decision = {
  readonly action: RuleAction
  /** What decided, in words. */
  readonly because: string
  readonly rule: ScopeAnswer['rule'] | undefined
  /** Who has to agree if it asks: all that are named here. `any` stands alone. */
  readonly approvers: readonly string[]
  /** No rule allows it before somebody has accepted the tool as it is now. */
  readonly drifted?: true
}

const strictness: Readonly<Record<RuleAction, number>> = { allow: 0, ask: 1, deny: 2 }

/** Within a scope the last match decides; across scopes the strictest answer wins; without any, reads may run. */
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

/** Of two scopes that ask, each has a say in who may answer. */
function stricter(a: Decision, b: Decision): Decision {
  if (strictness[a.action] > strictness[b.action]) return a
  if (strictness[a.action] < strictness[b.action]) return b
  const approvers = joinApprovers(a.approvers, b.approvers)
  return approvers === a.approvers ? a : { ...a, approvers }
}

/** From loose to strict: whoever sits at the agent counts only where every scope says so. */
function joinApprovers(a: readonly string[], b: readonly string[]): readonly string[] {
  const isByRight = givesRight(a) || givesRight(b)
  const isDemand = (each: string) => each !== 'any' && each !== 'client' && !(each === 'owner' && isByRight)
  const demands = [...new Set([...a, ...b])].filter(isDemand)
  if (demands.length > 0) return demands.length === a.length && demands.every((each) => a.includes(each)) ? a : demands
  return a.includes('client') && b.includes('client') ? a : anybody
}

/** A group that administrators named may answer for agents that are not its members' own. */
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
 * The first part of a rule that does not fit, by its key or by the pointer of a condition; undefined for a rule that
 * matches. Conditions are looked at last, because they cost most.
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

/** Somebody without an owner or a project is nobody's, even for `*`. */
function matchesName(pattern: string, name: string | undefined): boolean {
  return name !== undefined && matchesGlob(pattern, name)
}

const anybody: readonly string[] = ['any']

const answers: Readonly<Record<Risk, Decision>> = {
  read: { action: 'allow', because: 'no rule matches; reading is allowed', rule: undefined, approvers: anybody },
  write: { action: 'ask', because: 'no rule matches; write asks', rule: undefined, approvers: anybody },
  danger: { action: 'ask', because: 'no rule matches; danger asks', rule: undefined, approvers: anybody },
}

function withoutRule(risk: Risk): Decision {
  return answers[risk]
}

/** A rule that allowed it asks now as well, and has its say in who may answer. */
function afterDrift(decision: Decision, drifted: string): Decision {
  if (decision.action === 'ask') return decision
  const { rule, approvers } = decision
  const what = drifted === '' ? '' : `: ${drifted}`
  const because = `the definition of this tool has changed and nobody has accepted it${what}`
  return { action: 'ask', because, rule, approvers, drifted: true }
}
