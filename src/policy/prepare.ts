import type { Risk } from '../contract/risk.ts'
import type { Rule, RuleAction } from '../contract/rule.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { type Condition, toConditions } from './conditions.ts'

/** The answer of one rule. It is created once for each rule, so that a decision allocates nothing. */
export type ScopeAnswer = {
  readonly action: RuleAction
  readonly because: string
  readonly rule: { readonly scope: ScopeKey; readonly index: number; readonly name?: string }
  /** All entries must be satisfied; `any` is always the only entry. */
  readonly approvers: readonly string[]
}

/** A rule converted for fast matching. */
export type PreparedRule = {
  readonly tools: readonly string[]
  readonly server: string | undefined
  readonly risks: readonly Risk[] | undefined
  readonly principal: string | undefined
  readonly owner: string | undefined
  readonly project: string | undefined
  readonly expiresAt: number
  readonly conditions: readonly Condition[]
  /** Conditions on `_meta`. */
  readonly meta: readonly Condition[]
  readonly answer: ScopeAnswer
  /** The answer in a scope with writers who are not administrators. */
  readonly tightening: ScopeAnswer
}

/** A cache by the list of rules. A change of the configuration creates new lists. */
const known = new WeakMap<readonly Rule[], { scope: ScopeKey; prepared: readonly PreparedRule[] }>()

export function prepareRules(scope: ScopeKey, rules: readonly Rule[]): readonly PreparedRule[] {
  const kept = known.get(rules)
  if (kept?.scope === scope) return kept.prepared
  const prepared = rules.map((rule, index) => prepare(rule, scope, index))
  known.set(rules, { scope, prepared })
  return prepared
}

function prepare(rule: Rule, scope: ScopeKey, index: number): PreparedRule {
  const answer = {
    action: rule.action,
    because: inWords(rule, scope, index),
    rule: { scope, index, ...(rule.name !== undefined && { name: rule.name }) },
    approvers: [rule.approvers],
  }
  return {
    tools: toList(rule.tools),
    server: rule.server,
    risks: rule.risk === undefined ? undefined : toList(rule.risk),
    principal: rule.principal,
    owner: rule.owner,
    project: rule.project,
    expiresAt: rule.expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(rule.expires),
    conditions: rule.arguments === undefined ? [] : toConditions(rule.arguments),
    meta: rule.meta === undefined ? [] : toConditions(rule.meta),
    answer,
    tightening: { ...answer, approvers: withinDefault(rule.approvers) },
  }
}

/**
 * Approvers that can only restrict the default, which is the owner of the agent or an administrator. A group is required
 * in addition, but its members may answer only if they could without the rule.
 */
function withinDefault(approvers: string): readonly string[] {
  if (approvers === 'client') return ['any']
  return approvers.startsWith('group:') ? [approvers, 'owner'] : [approvers]
}

function toList<Item extends string>(value: Item | readonly Item[]): readonly Item[] {
  return typeof value === 'string' ? [value] : value
}

const verbs: Readonly<Record<RuleAction, string>> = { allow: 'allows', ask: 'requires approval', deny: 'denies' }

function inWords(rule: Rule, scope: ScopeKey, index: number): string {
  const name = rule.name ?? toList(rule.tools).join(', ')
  const reason = rule.reason === undefined ? '' : ` (${rule.reason})`
  return `rule ${index + 1} of ${scope} "${name}" ${verbs[rule.action]}${reason}`
}
