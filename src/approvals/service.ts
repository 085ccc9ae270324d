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
import type { StoredQuestion } from '../storage/tables/questions.ts'
import type { GrantCache } from './grant-cache.ts'
import { type ToolFacts, toGivenGrant, toNewGrant } from './new-grant.ts'
import type { ApprovalStore } from './store.ts'

export type ApprovalQuery = { readonly limit: number; readonly cursor?: string; readonly state?: ApprovalState }
export type GrantQuery = { readonly limit: number; readonly cursor?: string; readonly principal?: string }

export type WantedAnswer = {
  readonly verdict: Verdict
  readonly reason?: string | undefined
  readonly grant?: GrantWish | undefined
  /** What was looked at; an answer to something else does not count. */
  readonly hash?: string | undefined
}

/** What people do with questions and grants. Who may is decided at the moment in which they do it. */
export type ApprovalService = {
  list(by: Principal, query: ApprovalQuery): Promise<Page<Approval>>
  get(by: Principal, id: string): Promise<ApprovalDetail>
  answer(by: Principal, id: string, wanted: WantedAnswer): Promise<Approval>
  /** Whether an answered or waiting question is this caller's business. */
  maySee(by: Principal, approval: Approval): boolean
}

export type GrantService = {
  list(by: Principal, query: GrantQuery): Promise<Page<Grant>>
  add(by: Principal, wanted: NewGrant): Promise<Grant>
  revoke(by: Principal, id: string): Promise<Grant>
}

type ServiceParts = {
  readonly storage: Pick<Storage, 'kind' | 'questions' | 'grants' | 'calls'>
  readonly approvalStore: ApprovalStore
  readonly grantCache: GrantCache
  readonly identity: Pick<Identity, 'idsOf' | 'idOf'>
  /** A user as they are at this moment. */
  findUser(name: string): Person | undefined
  readonly clock: Clock
  readonly ids: Ids
  /** The tools that somebody sees, to know which of them are dangerous. */
  toolsOf(viewer: Principal): readonly ToolFacts[]
  describePrincipal(key: string): Principal
}

/** A user who may answer. */
type Person = Answerer & { readonly id: string }

const around = 10

type Services = { readonly approvals: ApprovalService; readonly grants: GrantService }

export function createApprovalServices(parts: ServiceParts): Services {
  const { storage, approvalStore, grantCache, identity, findUser, clock } = parts

  /** The person as they are at this moment: roles and groups change while pages are open. */
  function answererOf(by: Principal): Person {
    const user = by.kind === 'user' && by.person ? findUser(by.name) : undefined
    if (user) return user
    throw new GatewayError('person-needed', 'Only a person who has signed in answers questions and gives grants')
  }

  function seesAll({ kind, role }: Principal): boolean {
    return kind === 'user' && (role === 'administrator' || role === 'auditor')
  }

  /** Somebody who works under the scope that a grant is for. */
  function toViewer({ principal, scope = 'global' }: NewGrant): Principal {
    if (principal !== undefined) return parts.describePrincipal(principal)
    if (scope === 'global') return { kind: 'run', name: 'grant' }
    const project = scope.startsWith('project:') ? scope.slice('project:'.length) : undefined
    return project === undefined ? parts.describePrincipal(scope) : { kind: 'run', name: 'grant', project }
  }

  /** What belongs to a user: the user's own calls, and those of agents and sessions. */
  function principalsOf(by: Principal): string[] {
    return by.kind === 'user' ? identity.idsOf(by) : [identity.idOf(by)]
  }

  function groupsOf(by: Principal): readonly string[] {
    return (by.kind === 'user' && by.person && findUser(by.name)?.groups) || []
  }

  function maySee(by: Principal, { principalId = '', approvers }: Approval): boolean {
    if (seesAll(by) || principalsOf(by).includes(principalId)) return true
    // A group without the right to answer has no business with the arguments either.
    if (approvers.includes('owner')) return false
    return groupsOf(by).some((group) => approvers.includes(`group:${group}`))
  }

  async function find(by: Principal, id: string): Promise<StoredQuestion> {
    const question = await approvalStore.find(id)
    // The question of somebody else is no different from one that never was.
    if (question && maySee(by, question)) return question
    throw new GatewayError('approval-not-found', `No question has the id ${id}`)
  }

  function whyNot(person: Answerer, { state, owner, approvers, answers }: StoredQuestion): string | undefined {
    // Whoever approved what is settled by now is late, not in the way of a second person.
    const approved = state === 'waiting' ? answers.map((each) => each.by) : []
    return whyNotAnswer(person, { owner, approvers, approved })
  }

  /** The same before anybody tries, for whoever looks. */
  function barredOf(by: Principal, question: StoredQuestion): string | undefined {
    const person = by.kind === 'user' && by.person ? findUser(by.name) : undefined
    return person ? whyNot(person, question) : 'only a person who has signed in answers'
  }

  async function answer(by: Principal, id: string, wanted: WantedAnswer): Promise<Approval> {
    const person = answererOf(by)
    const question = await find(by, id)
    const problem = whyNot(person, question)
    if (problem) throw new GatewayError('approval-forbidden', `${person.name} may not answer this: ${problem}`)
    if (wanted.hash !== undefined && wanted.hash !== question.hash)
      throw new GatewayError('approval-changed', 'The question is not the one that was looked at')
    if (wanted.grant && wanted.verdict === 'deny')
      throw new GatewayError('request-invalid', 'A denial gives no grant: leave `grant` away, or approve')
    if (wanted.grant && approvalsNeeded(question.approvers) > 1)
      throw new GatewayError('grant-invalid', 'Two people decide about each of these calls: no grant stands for both')
    const grant = wanted.grant && toGivenGrant(question, wanted.grant, { by: person, now: clock.now(), ids: parts.ids })
    const { verdict, reason } = wanted
    return toApproval(await approvalStore.answer(question, { by: person.name, verdict, reason, grant }))
  }

  async function detail(by: Principal, id: string): Promise<ApprovalDetail> {
    const question = await find(by, id)
    const { principal, principalId, tool } = question
    const barred = barredOf(by, question)
    const [earlier, calls] = await Promise.all([
      storage.questions.countBefore({ principalId, tool, before: question.askedAt }),
      storage.calls.list({ limit: around, principal, principalId, cursor: toCursor([question.call]) }),
    ])
    return {
      ...toApproval(question),
      ...(question.drift && { drift: question.drift }),
      // A file has one instance; a database may have more of them, and each knows its own requests.
      waiting: { requests: approvalStore.waiting(id), complete: storage.kind === 'sqlite' },
      before: earlier,
      // Whoever is asked about one call need not see what the others were about.
      around: calls.items.map(({ id, tool, state, startedAt }) => ({ id, tool, state, startedAt })),
      ...(barred !== undefined && { barred }),
    }
  }

  return {
    approvals: {
      maySee,
      list(by, query) {
        if (seesAll(by)) return storage.questions.list(query)
        return storage.questions.list({ ...query, of: { principalIds: principalsOf(by), groups: groupsOf(by) } })
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
          // Also if nobody has the name: a later agent of that name must not find a grant that was not given to it.
          principalId: wanted.principal && identity.idOf(parts.describePrincipal(wanted.principal)),
          now: clock.now(),
          ids: parts.ids,
          tools: parts.toolsOf(toViewer(wanted)),
        })
        if (person.role === 'auditor') throw new GatewayError('forbidden', 'Auditors change nothing')
        if (person.role !== 'administrator' && !principalsOf(by).includes(grant.principalId ?? ''))
          throw new GatewayError('forbidden', 'Members give grants to their own agents and sessions only')
        await grantCache.add(grant, toPrincipalKey(by))
        return grant
      },
      async revoke(by, id) {
        const { role } = answererOf(by)
        const grant = await storage.grants.find(id)
        const isOwn = grant?.principalId !== undefined && principalsOf(by).includes(grant.principalId)
        if (!grant || (role === 'member' && !isOwn && grant.giverId !== identity.idOf(by)))
          throw new GatewayError('grant-not-found', `No grant has the id ${id}`)
        if (role === 'auditor') throw new GatewayError('forbidden', 'Auditors change nothing')
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
}: StoredQuestion): Approval {
  return shown
}
