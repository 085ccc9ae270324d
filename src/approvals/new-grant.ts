import { GatewayError } from '../contract/errors.ts'
import type { Grant, GrantWish, NewGrant } from '../contract/grant.ts'
import type { JsonValue } from '../contract/json.ts'
import type { Risk } from '../contract/risk.ts'
import { toIso } from '../lib/clock.ts'
import { matchesGlob } from '../lib/glob.ts'
import type { Ids } from '../lib/ids.ts'
import { atPointer } from '../policy/policy.ts'
import type { StoredQuestion } from '../storage/tables/questions.ts'

/** What a grant has to know of a tool: its public name, its risk and its definition. */
export type ToolFacts = { readonly name: string; readonly risk: Risk; readonly hash: string }

type Giving = { readonly by: { readonly name: string; readonly id: string }; readonly now: number; readonly ids: Ids }

/** A grant that is given with an answer: for the same principal and tool, as the definition was when it was asked. */
export function toGivenGrant(question: StoredQuestion, wish: GrantWish, { by, now, ids }: Giving): Grant {
  return {
    id: ids.next('grant'),
    tools: question.tool,
    ...toCovered(question, wish),
    ...(question.metaHash !== undefined && { meta: question.metaHash }),
    principal: question.principal,
    principalId: question.principalId,
    definitions: { [question.tool]: question.definition },
    budget: wish.budget,
    used: 0,
    expiresAt: toIso(now + wish.minutes * 60_000),
    reason: `Given with the approval of ${question.title}`.slice(0, 500),
    givenBy: by.name,
    giverId: by.id,
    givenAt: toIso(now),
  }
}

function toCovered(question: StoredQuestion, { covers, same = [] }: GrantWish): Pick<Grant, 'exactly' | 'arguments'> {
  if (covers === 'call') return { exactly: question.argumentsHash }
  if (covers === 'tool') return {}
  if (same.length === 0) throw invalid('A grant for calls that share arguments names those arguments in `same`')
  return { arguments: Object.fromEntries(same.map((pointer) => [pointer, toEqual(question, pointer)])) }
}

function toEqual({ arguments: given }: StoredQuestion, pointer: string): string | number | boolean | null {
  const value = pointer.startsWith('/') ? atPointer(given as JsonValue, pointer) : undefined
  if (value === undefined) throw invalid(`The arguments have nothing at ${pointer}`)
  if (typeof value === 'object' && value !== null)
    throw invalid(`Only single values can be held fast, and ${pointer} is a list or an object`)
  return value
}

type NewGiving = Giving & { readonly tools: readonly ToolFacts[]; readonly principalId: string | undefined }

/** A grant that is not part of an answer. */
export function toNewGrant(wanted: NewGrant, { by, now, ids, tools, principalId }: NewGiving): Grant {
  if ((wanted.principal === undefined) === (wanted.scope === undefined))
    throw invalid('A grant is for a `principal` or for a `scope`, and for one of them only')
  const expiresAt = Date.parse(wanted.expiresAt)
  if (expiresAt <= now) throw invalid('`expiresAt` has passed already')
  const covered = tools.filter(
    ({ name, risk }) => name === wanted.tools || (risk !== 'danger' && matchesGlob(wanted.tools, name)),
  )
  const dangerous = tools.filter(({ name, risk }) => risk === 'danger' && matchesGlob(wanted.tools, name))
  if (covered.length === 0 && dangerous.length > 0)
    throw invalid(`${dangerous[0]?.name} is dangerous: name it exactly, without a pattern`)
  return {
    id: ids.next('grant'),
    ...wanted,
    ...(principalId !== undefined && { principalId }),
    expiresAt: toIso(expiresAt),
    definitions: Object.fromEntries(covered.map(({ name, hash }) => [name, hash])),
    used: 0,
    givenBy: by.name,
    giverId: by.id,
    givenAt: toIso(now),
  }
}

function invalid(message: string): GatewayError {
  return new GatewayError('grant-invalid', message)
}
