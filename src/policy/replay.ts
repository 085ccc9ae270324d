import type { Replay, ReplayedCall, RuleSet } from '../contract/api/rules.ts'
import type { Call } from '../contract/call.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Principal } from '../contract/principal.ts'
import type { RuleAction } from '../contract/rule.ts'
import { isObject } from '../lib/json.ts'
import type { Storage } from '../storage/storage.ts'
import { decide, type ScopedRules, type Subject } from './decide.ts'
import { findHidden } from './uncertain.ts'

export type WantedReplay = {
  readonly rules?: RuleSet | undefined
  /** Only calls of this principal; all calls if absent. */
  readonly principal?: string | undefined
  /** Of these, only calls of the identity that currently has the name. */
  readonly principalId?: string | undefined
  readonly tool?: string | undefined
  readonly since?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

export type ReplayParts = {
  readonly calls: Pick<Storage['calls'], 'list'>
  rulesFor(of: Principal, changed: RuleSet | undefined): readonly ScopedRules[]
  toSubject(of: Principal): Omit<Subject, 'tool' | 'server' | 'risk'>
  describe(key: string): Principal
}

/** Other work can run between two pages. */
const callsPerPage = 250

/** Evaluates changed rules on past calls, newest first. Nothing is sent or written. */
export async function replayCalls(parts: ReplayParts, wanted: WantedReplay): Promise<Replay> {
  const since = wanted.since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(wanted.since)
  const judge = createJudge(parts, wanted.rules)
  const items: ReplayedCall[] = []
  let looked = 0
  let next: string | undefined = wanted.cursor
  do {
    const limit = Math.min(callsPerPage, wanted.limit - looked)
    const { principal, principalId, tool } = wanted
    const page = await parts.calls.list({ limit, cursor: next, principal, principalId, tool })
    const recent = page.items.filter((call) => Date.parse(call.startedAt) >= since)
    items.push(...recent.map(judge).filter((item) => item !== undefined))
    looked += recent.length
    next = recent.length < page.items.length ? undefined : page.next
  } while (next !== undefined && looked < wanted.limit)
  return { looked, ...sumUp(items), items, next: next ?? null }
}

function createJudge(parts: ReplayParts, changed: RuleSet | undefined): (call: Call) => ReplayedCall | undefined {
  const known = new Map<string, ReturnType<typeof prepare>>()

  /** The values that are the same for all calls of one principal. */
  function prepare(key: string) {
    const of = parts.describe(key)
    return { subject: parts.toSubject(of), inForce: parts.rulesFor(of, undefined), would: parts.rulesFor(of, changed) }
  }

  return (call) => {
    const recorded = toRecorded(call)
    if (recorded === undefined) return undefined
    const { subject: who, inForce, would } = known.get(call.principal) ?? prepare(call.principal)
    known.set(call.principal, { subject: who, inForce, would })
    const subject = { ...who, ...toCalled(call) }
    const before = changed === undefined ? recorded : decide(inForce, subject).action
    const { action: after, because } = decide(would, subject)
    const hidden = findHidden(would, subject) ?? (changed && findHidden(inForce, subject))
    if (before === after && hidden === undefined) return undefined
    const { id, tool, principal, startedAt } = call
    const uncertain = hidden === undefined ? {} : { uncertain: `the record contains ${hidden} only masked` }
    return { call: id, tool, principal, startedAt, before, after, because, ...uncertain }
  }
}

function toCalled({
  tool,
  server,
  risk,
  arguments: given,
  meta,
}: Call): Pick<Subject, 'tool' | 'server' | 'risk' | 'arguments' | 'meta'> {
  const known: JsonObject = isObject(given) ? given : {}
  return { tool, server, risk, arguments: known, meta: isObject(meta) ? meta : undefined }
}

const asked = new Set(['approval-denied', 'approval-expired', 'approval-withdrawn'])

/** The recorded action. Undefined for names without a tool, for which no rule was evaluated. */
function toRecorded({ error, server, state, decision }: Call): RuleAction | undefined {
  if (error?.code === 'call-denied') return 'deny'
  if (asked.has(error?.code ?? '') || state === 'waiting' || decision?.startsWith('approved by ')) return 'ask'
  return server === '' ? undefined : 'allow'
}

function sumUp(items: readonly ReplayedCall[]): Pick<Replay, 'changed' | 'uncertain' | 'summary'> {
  const changed = items.filter(({ before, after }) => before !== after)
  const summary: Record<string, number> = {}
  for (const { before, after } of changed) {
    const way = `${before} → ${after}`
    summary[way] = (summary[way] ?? 0) + 1
  }
  return { changed: changed.length, uncertain: items.filter((item) => item.uncertain !== undefined).length, summary }
}
