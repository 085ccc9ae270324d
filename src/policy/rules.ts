import { type ConfigStore, projectOf, scopesOf } from '../config/config.ts'
import type { Replay, RuleScope, RuleSet, RuleTest } from '../contract/api/rules.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Risk } from '../contract/risk.ts'
import type { Rule } from '../contract/rule.ts'
import { type Scope, type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import type { Clock } from '../lib/clock.ts'
import type { Storage } from '../storage/storage.ts'
import type { ScopedRules, Subject } from './decide.ts'
import { concerns, explain } from './explain.ts'
import { replayCalls, type WantedReplay } from './replay.ts'
import { riskOf } from './risk.ts'

export type RuleServiceParts = {
  readonly config: ConfigStore
  /** A tool that is visible to a principal, by its public name. */
  findTool(of: Principal, name: string): KnownTool | undefined
  readonly storage: Pick<Storage, 'calls'>
  readonly clock: Clock
}

export type KnownTool = {
  readonly name: string
  readonly server: string
  readonly risk: Risk
  readonly riskFrom: string
  /** How its definition differs from the accepted one, in words. */
  readonly drifted?: string | undefined
}

/** A hypothetical call to test rules with. */
export type WantedTest = {
  readonly tool: string
  readonly arguments: JsonObject
  readonly meta?: JsonObject | undefined
  readonly server?: string | undefined
  readonly risk?: Risk | undefined
  readonly rules?: RuleSet | undefined
}

/** The operations on rules: list, set, and test on past and hypothetical calls. */
export type RuleService = {
  /** The rules that can match calls of a principal, by scope. */
  list(of: Principal): RuleScope[]
  listAll(): RuleScope[]
  /** Replaces the rules of one scope. */
  set(by: Principal, scope: ScopeKey, rules: readonly Rule[]): Promise<RuleScope>
  /** The decision about a hypothetical call, with its reasons. */
  test(of: Principal, wanted: WantedTest): RuleTest
  /** The decisions that changed rules would have made about past calls. */
  replay(wanted: WantedReplay): Promise<Replay>
}

export function createRuleService(parts: RuleServiceParts): RuleService {
  const { config, storage, clock } = parts
  return { list, listAll, set, test, replay }

  function list(of: Principal): RuleScope[] {
    const who = toWho(of)
    return config
      .effective(of)
      .rules.map(({ scope, rules }) => toShown(scope, rules, (rule) => concerns(rule, who)))
      .filter(({ rules }) => rules.length > 0)
  }

  function listAll(): RuleScope[] {
    return listStated().map(({ scope, rules }) => toShown(scope, rules))
  }

  /** Every scope that has rules. */
  function listStated(): ScopedRules[] {
    const stated = config.scopes().map((scope) => ({ scope: toScopeKey(scope), rules: config.statedIn(scope).rules }))
    return stated.filter(({ rules }) => rules.length > 0)
  }

  function toShown(scope: ScopeKey, rules: readonly Rule[], isShown = (_rule: Rule) => true): RuleScope {
    const now = clock.now()
    const shown = rules.map((rule, index) => ({
      ...rule,
      index,
      expired: rule.expires !== undefined && Date.parse(rule.expires) <= now,
    }))
    return { scope, rules: shown.filter((rule) => isShown(rule)) }
  }

  async function set(by: Principal, key: ScopeKey, rules: readonly Rule[]): Promise<RuleScope> {
    const scope = toScope(key)
    await config.change({ kind: 'set-rules', scope, rules }, { by, judge: () => demandRight(by, scope) })
    return toShown(key, rulesIn(key))
  }

  function rulesIn(key: ScopeKey): readonly Rule[] {
    return listStated().find(({ scope }) => scope === key)?.rules ?? []
  }

  /** Administrators may change rules in every scope, owners in their projects. */
  function demandRight({ kind, name, role }: Principal, scope: Scope): void {
    if (kind === 'user' && role === 'administrator') return
    const { projects } = config.current()
    const project = scope.kind === 'project' && Object.hasOwn(projects, scope.name) ? projects[scope.name] : undefined
    if (kind === 'user' && role === 'member' && project?.owners.includes(name)) return
    const who = scope.kind === 'project' ? 'administrators and the owners of the project' : 'administrators'
    throw new GatewayError('forbidden', `Only ${who} can change the rules of ${toScopeKey(scope)}`)
  }

  function test(of: Principal, wanted: WantedTest): RuleTest {
    const target = findTarget(of, wanted)
    const subject = { ...toSubject(of), ...target, arguments: wanted.arguments, meta: wanted.meta }
    const { decision, scopes } = explain(rulesFor(of, wanted.rules), subject)
    const { action, because, rule, approvers } = decision
    return {
      tool: target.tool,
      known: target.known,
      server: target.server,
      risk: target.risk,
      riskFrom: target.riskFrom,
      principal: subject.principal,
      ...(subject.owner !== undefined && { owner: subject.owner }),
      ...(subject.project !== undefined && { project: subject.project }),
      action,
      because,
      ...(rule && { rule }),
      approvers: [...approvers],
      scopes: scopes.map((scope) => ({ ...scope, rules: [...scope.rules] })),
    }
  }

  /** An existing tool, or a hypothetical one without annotations, whose risk is the server's default unless given. */
  function findTarget(of: Principal, { tool, server, risk }: WantedTest) {
    const known = parts.findTool(of, tool)
    if (known) {
      const told = risk ? { risk, riskFrom: 'given' } : { risk: known.risk, riskFrom: known.riskFrom }
      return { tool: known.name, server: server ?? known.server, known: true, drifted: known.drifted, ...told }
    }
    const { servers } = config.effective(of)
    const named = server ?? longest([...servers.keys()].filter((name) => tool.startsWith(`${name}_`))) ?? ''
    const definition = servers.get(named)?.definition
    const { defaultRisk, trust = 'none' } = definition ?? {}
    const judged = riskOf({ name: tool, annotations: undefined, override: undefined, defaultRisk, trust })
    const told = risk ? { risk, riskFrom: 'given' } : { risk: judged.risk, riskFrom: judged.from }
    return { tool, server: named, known: false, ...told }
  }

  /** The rules that apply to a principal. The scopes of a changed rule set replace those in force. */
  function rulesFor(of: Principal, changed: RuleSet | undefined): readonly ScopedRules[] {
    const inForce = config.effective(of).rules
    if (changed === undefined) return inForce
    const scopes = new Set([...scopesOf(config.current(), of).map(toScopeKey), ...inForce.map(({ scope }) => scope)])
    return [...scopes]
      .map((scope) => ({
        scope,
        onlyTightens: config.onlyTightens(scope),
        rules: statedBy(changed, toScope(scope)) ?? inForce.find((each) => each.scope === scope)?.rules ?? [],
      }))
      .filter(({ rules }) => rules.length > 0)
  }

  function toWho(of: Principal): Pick<Subject, 'principal' | 'owner' | 'project'> {
    return { principal: toPrincipalKey(of), owner: of.owner, project: projectOf(config.current(), of) }
  }

  function toSubject(of: Principal): Omit<Subject, 'tool' | 'server' | 'risk'> {
    return { ...toWho(of), arguments: {}, now: clock.now() }
  }

  function replay(wanted: WantedReplay): Promise<Replay> {
    const describe = config.describePrincipal
    return replayCalls({ calls: storage.calls, rulesFor, toSubject, describe }, wanted)
  }
}

function statedBy(changed: RuleSet, scope: Scope): readonly Rule[] | undefined {
  if (scope.kind === 'global') return changed.rules
  const stated = {
    project: changed.projects,
    agent: changed.agents,
    user: changed.users,
    session: undefined,
    automation: undefined,
  }
  const scopes = stated[scope.kind] ?? {}
  return Object.hasOwn(scopes, scope.name) ? scopes[scope.name]?.rules : undefined
}

function longest(names: readonly string[]): string | undefined {
  return names.toSorted((a, b) => b.length - a.length)[0]
}
