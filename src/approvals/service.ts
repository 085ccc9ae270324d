import type { Approval, ApprovalDetail, ApprovalState, Verdict } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Grant, GrantWish, NewGrant } from '../contract/grant.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Identity } from '../identity/identity.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { type Answerer, approvalsNeeded, whyNotAnswer } from '../policy/policy.ts'
import { type Page, toCursor } from '../storage/page.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredApproval } from '../storage/tables/approvals.ts'
import type { GrantCache } from './grant-cache.ts'
import { type ToolFacts, toGivenGrant, toNewGrant } from './new-grant.ts'
import type { ApprovalStore } from './store.ts'

export type ApprovalQuery = { readonly limit: number; readonly cursor?: string; readonly state?: ApprovalState }
export type GrantQuery = { readonly limit: number; readonly cursor?: string; readonly principal?: string }

export type WantedAnswer = {
  readonly verdict: Verdict
  readonly reason?: string | undefined
  readonly grant?: GrantWish | undefined
  /** The hash of the approval that the person was shown. The answer is refused if the hash differs. */
  readonly hash?: string | undefined
}

/** Approvals for people. Rights are checked at the time of each action. */
export type ApprovalService = {
  list(by: Principal, query: ApprovalQuery): Promise<Page<Approval>>
  get(by: Principal, id: string): Promise<ApprovalDetail>
  answer(by: Principal, id: string, wanted: WantedAnswer): Promise<Approval>
  /** Whether this principal may see the approval. */
  maySee(by: Principal, approval: Approval): boolean
}

export type GrantService = {
  list(by: Principal, query: GrantQuery): Promise<Page<Grant>>
  add(by: Principal, wanted: NewGrant): Promise<Grant>
  revoke(by: Principal, id: string): Promise<Grant>
}

type ServiceParts = {
  readonly storage: Pick<Storage, 'kind' | 'approvals' | 'grants' | 'calls'>
  readonly approvalStore: ApprovalStore
  readonly grantCache: GrantCache
  readonly identity: Pick<Identity, 'idsOf' | 'idOf'>
  /** Role and groups of a user at this moment. */
  findUser(name: string): Person | undefined
  readonly clock: Clock
  readonly ids: Ids
  /** The tools in the view of a principal, with their risk. */
  toolsOf(viewer: Principal): readonly ToolFacts[]
  describePrincipal(key: string): Principal
}

/** A user who may answer. */
type Person = Answerer & { readonly id: string }

const mostRecent = 10

type Services = { readonly approvals: ApprovalService; readonly grants: GrantService }

export function createApprovalServices(parts: ServiceParts): Services {
  const { storage, approvalStore, grantCache, identity, findUser, clock } = parts

  /** Reads the user again, because role and groups can change while a page is open. */
  function answererOf(by: Principal): Person {
    const user = by.kind === 'user' && by.person ? findUser(by.name) : undefined
    if (user) return user
    throw new GatewayError('person-needed', 'Only a signed-in person can answer approvals and give grants')
  }

  function seesAll({ kind, role }: Principal): boolean {
    return kind === 'user' && (role === 'administrator' || role === 'auditor')
  }

  /** A principal with the view of the scope that a grant is for. */
  function toViewer({ principal, scope = 'global' }: NewGrant): Principal {
    if (principal !== undefined) return parts.describePrincipal(principal)
    if (scope === 'global') return { kind: 'run', name: 'grant' }
    const project = scope.startsWith('project:') ? scope.slice('project:'.length) : undefined
    return project === undefined ? parts.describePrincipal(scope) : { kind: 'run', name: 'grant', project }
  }

  /** The ids of a user and of the user's agents and sessions. For an agent or a session only its own id. */
  function principalsOf(by: Principal): string[] {
    return by.kind === 'user' ? identity.idsOf(by) : [identity.idOf(by)]
  }

  function groupsOf(by: Principal): readonly string[] {
    return (by.kind === 'user' && by.person && findUser(by.name)?.groups) || []
  }

  function maySee(by: Principal, { principalId = '', approvers }: Approval): boolean {
    if (seesAll(by) || principalsOf(by).includes(principalId)) return true
    // `owner` beside a group means that members of the group alone may not answer, so they may not see the arguments.
    if (approvers.includes('owner')) return false
    return groupsOf(by).some((group) => approvers.includes(`group:${group}`))
  }

  async function find(by: Principal, id: string): Promise<StoredApproval> {
    const approval = await approvalStore.find(id)
    // The same error if the approval does not exist and if the principal may not see it, so that ids cannot be probed.
    if (approval && maySee(by, approval)) return approval
    throw new GatewayError('approval-not-found', `No approval has the id ${id}`)
  }

  function whyNot(person: Answerer, { state, owner, approvers, answers }: StoredApproval): string | undefined {
    // "You have approved already" is only a reason while a second person is needed.
    const approved = state === 'waiting' ? answers.map((each) => each.by) : []
    return whyNotAnswer(person, { owner, approvers, approved })
  }

  /** The same check for a page that shows the approval, before anybody answers. */
  function whyNotAllowed(by: Principal, approval: StoredApproval): string | undefined {
    const person = by.kind === 'user' && by.person ? findUser(by.name) : undefined
    return person ? whyNot(person, approval) : 'only a signed-in person can answer'
  }

  async function answer(by: Principal, id: string, wanted: WantedAnswer): Promise<Approval> {
    const person = answererOf(by)
    const approval = await find(by, id)
    const problem = whyNot(person, approval)
    if (problem) throw new GatewayError('approval-forbidden', `${person.name} may not answer this: ${problem}`)
    if (wanted.hash !== undefined && wanted.hash !== approval.hash)
      throw new GatewayError(
        'approval-changed',
        'The approval differs from the one that was shown: `hash` does not match. Read the approval again',
      )
    if (wanted.grant && wanted.verdict === 'deny')
      throw new GatewayError('request-invalid', '`grant` is only allowed when approving')
    if (wanted.grant && approvalsNeeded(approval.approvers) > 1)
      throw new GatewayError(
        'grant-invalid',
        'A grant is not possible here, because two people must approve each of these calls',
      )
    const grant = wanted.grant && toGivenGrant(approval, wanted.grant, { by: person, now: clock.now(), ids: parts.ids })
    const { verdict, reason } = wanted
    return toApproval(await approvalStore.answer(approval, { by: person.name, verdict, reason, grant }))
  }

  async function detail(by: Principal, id: string): Promise<ApprovalDetail> {
    const approval = await find(by, id)
    const { principal, principalId, tool } = approval
    const notAllowed = whyNotAllowed(by, approval)
    const [earlier, calls] = await Promise.all([
      storage.approvals.countBefore({ principalId, tool, before: approval.requestedAt }),
      storage.calls.list({ limit: mostRecent, principal, principalId, cursor: toCursor([approval.call]) }),
    ])
    return {
      ...toApproval(approval),
      ...(approval.drift && { drift: approval.drift }),
      // SQLite has one instance. On PostgreSQL other instances may hold requests that this one does not know.
      waiting: { requests: approvalStore.waiting(id), complete: storage.kind === 'sqlite' },
      earlier,
      // Without the arguments: a person who may answer this call may not be allowed to see the arguments of other calls.
      recentCalls: calls.items.map(({ id, tool, state, startedAt }) => ({ id, tool, state, startedAt })),
      ...(notAllowed !== undefined && { notAllowed }),
    }
  }

  return {
    approvals: {
      maySee,
      list(by, query) {
        if (seesAll(by)) return storage.approvals.list(query)
        return storage.approvals.list({ ...query, of: { principalIds: principalsOf(by), groups: groupsOf(by) } })
      },
      get: detail,
      answer,
    },
    grants: {
      async list(by, query) {
        if (seesAll(by)) return storage.grants.list(query)
        return storage.grants.list({ ...query, of: principalsOf(by) })
      },
      async add(by, wanted) {
        const person = answererOf(by)
        const grant = toNewGrant(wanted, {
          by: person,
          // Also for a name that does not exist yet: a later agent of that name must not get this grant.
          principalId: wanted.principal && identity.idOf(parts.describePrincipal(wanted.principal)),
          now: clock.now(),
          ids: parts.ids,
          tools: parts.toolsOf(toViewer(wanted)),
        })
        if (person.role === 'auditor') throw new GatewayError('forbidden', 'Auditors cannot change anything')
        if (person.role !== 'administrator' && !principalsOf(by).includes(grant.principalId ?? ''))
          throw new GatewayError('forbidden', 'Members can give grants only to their own agents and sessions')
        await grantCache.add(grant, toPrincipalKey(by))
        return grant
      },
      async revoke(by, id) {
        const { role } = answererOf(by)
        const grant = await storage.grants.find(id)
        const isOwn = grant?.principalId !== undefined && principalsOf(by).includes(grant.principalId)
        if (!grant || (role === 'member' && !isOwn && grant.giverId !== identity.idOf(by)))
          throw new GatewayError('grant-not-found', `No grant has the id ${id}`)
        if (role === 'auditor') throw new GatewayError('forbidden', 'Auditors cannot change anything')
        return grantCache.revoke(id, toPrincipalKey(by))
      },
    },
  }
}

function toApproval({
  definition: _definition,
  argumentsHash: _hash,
  metaHash: _metaHash,
  live: _live,
  drift: _drift,
  ...shown
}: StoredApproval): Approval {
  return shown
}
