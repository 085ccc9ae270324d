import type { PrincipalKey } from '../contract/principal.ts'
import type { Risk } from '../contract/risk.ts'
import type { Rule, RuleAction } from '../contract/rule.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { matchesAny, matchesGlob } from '../lib/glob.ts'

export type ScopedRules = { readonly scope: ScopeKey; readonly rules: readonly Rule[] }

/** What rules look at. */
export type Subject = {
  readonly tool: string
  readonly server: string
  readonly risk: Risk
  readonly principal: PrincipalKey
}

export type Decision = {
  readonly action: RuleAction
  /** What decided, in words. */
  readonly because: string
  readonly rule: { readonly scope: ScopeKey; readonly index: number } | undefined
}

const strictness: Readonly<Record<RuleAction, number>> = { allow: 0, ask: 1, deny: 2 }

/** Within a scope the last match decides; across scopes the strictest answer wins; without any, reads may run. */
export function decide(scopes: readonly ScopedRules[], subject: Subject): Decision {
  const answers = scopes.map((scope) => lastMatch(scope, subject)).filter((answer) => answer !== undefined)
  return answers.reduce<Decision | undefined>(stricter, undefined) ?? withoutRule(subject.risk)
}

function stricter(a: Decision | undefined, b: Decision): Decision {
  return a && strictness[a.action] >= strictness[b.action] ? a : b
}

function lastMatch({ scope, rules }: ScopedRules, subject: Subject): Decision | undefined {
  const index = rules.findLastIndex((rule) => matches(rule, subject))
  const rule = rules[index]
  return rule && { action: rule.action, because: inWords(rule, scope, index), rule: { scope, index } }
}

function matches(rule: Rule, subject: Subject): boolean {
  if (!matchesAny(toList(rule.tools), subject.tool)) return false
  if (rule.server !== undefined && !matchesGlob(rule.server, subject.server)) return false
  if (rule.risk !== undefined && !toList(rule.risk).includes(subject.risk)) return false
  return rule.principal === undefined || matchesGlob(rule.principal, subject.principal)
}

/** By hand instead of `flat`, which costs more than the matching. */
function toList<Item extends string>(value: Item | readonly Item[]): readonly Item[] {
  return typeof value === 'string' ? [value] : value
}

const verbs: Readonly<Record<RuleAction, string>> = { allow: 'allows', ask: 'asks', deny: 'denies' }

function inWords(rule: Rule, scope: ScopeKey, index: number): string {
  const name = rule.name ?? toList(rule.tools).join(', ')
  const reason = rule.reason === undefined ? '' : ` (${rule.reason})`
  return `rule ${index + 1} of ${scope} "${name}" ${verbs[rule.action]}${reason}`
}

function withoutRule(risk: Risk): Decision {
  if (risk === 'read') return { action: 'allow', because: 'no rule matches; reading is allowed', rule: undefined }
  return { action: 'ask', because: `no rule matches; ${risk} asks`, rule: undefined }
}
