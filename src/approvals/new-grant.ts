import { GatewayError } from '../contract/errors.ts'
import type { Grant, GrantWish, NewGrant } from '../contract/grant.ts'
import type { JsonValue } from '../contract/json.ts'
import type { Risk } from '../contract/risk.ts'
import { toIso } from '../lib/clock.ts'
import { matchesGlob } from '../lib/glob.ts'
import type { Ids } from '../lib/ids.ts'
import { atPointer } from '../policy/policy.ts'
import type { StoredApproval } from '../storage/tables/approvals.ts'

/** The facts about a tool that a new grant uses: public name, risk and hash of the definition. */
export type ToolFacts = { readonly name: string; readonly risk: Risk; readonly hash: string }

type Giving = { readonly by: { readonly name: string; readonly id: string }; readonly now: number; readonly ids: Ids }

/** A grant that is given with an answer, for the principal, the tool and the definition of the approval. */
export function toGivenGrant(approval: StoredApproval, wish: GrantWish, { by, now, ids }: Giving): Grant {
  return {
    id: ids.next('grant'),
    tools: approval.tool,
    ...toCovered(approval, wish),
    ...(approval.metaHash !== undefined && { meta: approval.metaHash }),
    principal: approval.principal,
    principalId: approval.principalId,
    definitions: { [approval.tool]: approval.definition },
    budget: wish.budget,
    used: 0,
    expiresAt: toIso(now + wish.minutes * 60_000),
    reason: `Given with the approval of ${approval.title}`.slice(0, 500),
    givenBy: by.name,
    giverId: by.id,
    givenAt: toIso(now),
  }
}

function toCovered(approval: StoredApproval, { covers, same = [] }: GrantWish): Pick<Grant, 'exactly' | 'arguments'> {
  if (covers === 'call') return { exactly: approval.argumentsHash }
  if (covers === 'tool') return {}
  if (same.length === 0)
    throw invalid('`same` is missing: a grant with `covers: shape` must name at least one argument')
  return { arguments: Object.fromEntries(same.map((pointer) => [pointer, toEqual(approval, pointer)])) }
}

function toEqual({ arguments: given }: StoredApproval, pointer: string): string | number | boolean | null {
  const value = pointer.startsWith('/') ? atPointer(given as JsonValue, pointer) : undefined
  if (value === undefined) throw invalid(`The call has no argument at ${pointer}`)
  if (typeof value === 'object' && value !== null)
    throw invalid(`Only strings, numbers, booleans and null can be fixed in a grant; ${pointer} is a list or an object`)
  return value
}

type NewGiving = Giving & { readonly tools: readonly ToolFacts[]; readonly principalId: string | undefined }

/** A grant that is not part of an answer. */
export function toNewGrant(wanted: NewGrant, { by, now, ids, tools, principalId }: NewGiving): Grant {
  if ((wanted.principal === undefined) === (wanted.scope === undefined))
    throw invalid('Set either `principal` or `scope` of a grant, not both')
  const expiresAt = Date.parse(wanted.expiresAt)
  if (expiresAt <= now) throw invalid('`expiresAt` must be in the future')
  const covered = tools.filter(
    ({ name, risk }) => name === wanted.tools || (risk !== 'danger' && matchesGlob(wanted.tools, name)),
  )
  const dangerous = tools.filter(({ name, risk }) => risk === 'danger' && matchesGlob(wanted.tools, name))
  if (covered.length === 0 && dangerous.length > 0)
    throw invalid(`${dangerous[0]?.name} has risk danger: give its exact name instead of a pattern`)
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
