import type { ApprovalAnswer, ApprovalDrift, ApprovalState, Verdict } from '../contract/approval.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { Grant } from '../contract/grant.ts'
import type { ResolvedCall } from '../contract/permit.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import { crashPoint } from '../lib/crash-point.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { createTurns } from '../lib/turns.ts'
import { approvalsNeeded } from '../policy/policy.ts'
import type { Storage } from '../storage/storage.ts'
import type { NewApproval, StoredApproval } from '../storage/tables/approvals.ts'
import { createWaiters } from './waiters.ts'

/** What the person who answers is shown, and the hashes that the answer is valid for. */
export type About = Pick<
  NewApproval,
  | 'hash'
  | 'definition'
  | 'argumentsHash'
  | 'metaHash'
  | 'title'
  | 'description'
  | 'serverTitle'
  | 'reason'
  | 'approvers'
  | 'owner'
  | 'input'
  | 'meta'
> & {
  /** How the definition differs from the accepted one; computed only when a new approval is stored. */
  readonly drift?: { readonly kind: ApprovalDrift['kind']; difference(): string } | undefined
}

export type GivenAnswer = {
  readonly by: string
  readonly verdict: Verdict
  readonly reason?: string | undefined
  readonly grant?: Grant | undefined
}

/** The approvals. Each change is one commit, so of several changes at once exactly one succeeds. */
export type ApprovalStore = {
  /** The open approval of an equal call of the same principal, or a new approval, or an error if too many wait. */
  request(call: ResolvedCall, about: About, most: number): Promise<StoredApproval | GatewayError>
  find(id: string): Promise<StoredApproval | undefined>
  /** Reads the approval again, and expires it if its expiry has passed. */
  refresh(approval: StoredApproval): Promise<StoredApproval>
  /** The answered approval of an equal call of the same principal, if its outcome was not delivered yet. */
  findAnswered(principalId: string, hash: string): Promise<StoredApproval | undefined>
  /** Resolves when the approval no longer waits; rejects when `signal` aborts. */
  settled(approval: StoredApproval, signal: AbortSignal): Promise<StoredApproval>
  /** How many requests this instance holds open for the answer. */
  waiting(id: string): number
  /** The approval with the answer; throws `approval-answered` when it no longer waits. */
  answer(approval: StoredApproval, given: GivenAnswer): Promise<StoredApproval>
  /** Ends an open approval whose call must not run any more. */
  withdraw(approval: StoredApproval, why: string): Promise<void>
  /** The caller gets the outcome now; after this resolves, an equal call is a new call. */
  deliver(approval: StoredApproval): Promise<void>
  close(): void
}

export type ApprovalStoreParts = {
  readonly storage: Pick<Storage, 'approvals' | 'approvalChanges' | 'changes' | 'calls'>
  /** Milliseconds until an approval expires. */
  readonly expiry: () => number
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly emit: Emitter<EventTable>['emit']
}

/** Another try is needed if an equal call stored its approval first, and that approval ended before this call could join it. */
const mostTries = 5

export function createApprovalStore({ storage, expiry, clock, ids, log, emit }: ApprovalStoreParts): ApprovalStore {
  const { approvals, approvalChanges, changes } = storage
  /** Serializes new approvals, so that the count of waiting approvals is still correct when the new one is stored. */
  const inTurn = createTurns()
  const waiters = createWaiters({ approvals, changes, clock, log, emit, expire })

  return {
    async request(call, about, most) {
      for (let tries = 1; tries <= mostTries; tries++) {
        const live = await approvals.findLive(call.principalId, about.hash)
        if (live && !isOver(live)) return live
        if (live) await expire(live)
        else {
          const requested = await inTurn(() => requestNew(call, about, most))
          if (requested) return requested
        }
      }
      throw new GatewayError('internal', `No approval for ${call.tool} could be stored`)
    },
    find: approvals.find,
    async refresh({ id }) {
      const now = await getApproval(id)
      if (!isOver(now)) return now
      await expire(now)
      return getApproval(id)
    },
    async findAnswered(principalId, hash) {
      const live = await approvals.findLive(principalId, hash)
      return live && live.state !== 'waiting' && !isOver(live) ? live : undefined
    },
    settled: waiters.settled,
    waiting: waiters.waiting,
    async answer(approval, given) {
      const answer = toAnswer(given, clock.now())
      const next = nextState(approval, answer)
      const answered = await change(approval, async () => {
        crashPoint('before the answer is written')
        if (!(await approvalChanges.answer(approval, { answer, next, grant: given.grant }))) return false
        crashPoint('the answer is written')
        if (given.grant) await changes.announce('grants')
        return true
      })
      if (!answered) throw await tooLate(approval)
      return answered
    },
    async withdraw(approval, why) {
      await change(approval, () => approvalChanges.withdraw(approval, why))
    },
    deliver: approvalChanges.deliver,
    close: waiters.close,
  }

  async function getApproval(id: string): Promise<StoredApproval> {
    const approval = await approvals.find(id)
    if (approval) return approval
    throw new GatewayError('approval-not-found', `No approval has the id ${id}`)
  }

  async function requestNew(
    call: ResolvedCall,
    about: About,
    most: number,
  ): Promise<StoredApproval | GatewayError | undefined> {
    const { principal, principalId } = call
    const live = await approvals.findLive(principalId, about.hash) // an equal call may have stored its approval before this turn
    if (live) return isOver(live) ? undefined : live
    if ((await approvals.countWaiting(principalId)) >= most) return tooMany(principal, most)
    const approval = toApproval(call, about)
    crashPoint('before the approval is stored')
    if (!(await approvalChanges.request(call, approval))) return undefined
    crashPoint('the approval is stored')
    waiters.requested(approval)
    return { ...approval, live: true }
  }

  function toApproval(call: ResolvedCall, { drift, ...about }: About): NewApproval {
    const shown = call.recorded ?? call
    const now = clock.now()
    return {
      id: ids.next('approval'),
      state: 'waiting',
      call: call.id,
      tool: shown.tool,
      server: call.server,
      principal: call.principal,
      principalId: call.principalId,
      arguments: shown.arguments,
      risk: call.risk,
      ...about,
      requestedAt: toIso(now),
      expiresAt: toIso(now + expiry()),
      answers: [],
      ...(drift && { drift: { kind: drift.kind, difference: drift.difference() } }),
    }
  }

  async function expire(approval: StoredApproval): Promise<void> {
    await change(approval, () => approvalChanges.expire(approval))
  }

  /** Writes a change of an approval, then reports it. Undefined if another change was written first. */
  function change(approval: StoredApproval, write: () => Promise<boolean>): Promise<StoredApproval | undefined> {
    return waiters.whileChanging(approval.id, async () => ((await write()) ? report(approval) : undefined))
  }

  function isOver({ state, expiresAt }: StoredApproval): boolean {
    return (state === 'waiting' || state === 'approved') && Date.parse(expiresAt) <= clock.now()
  }

  /** Reads the approval again and reports it to waiting requests, event listeners and the other instances. */
  async function report(approval: StoredApproval): Promise<StoredApproval> {
    const now = (await approvals.find(approval.id)) ?? approval
    waiters.changed(now)
    const call = ended.has(now.state) ? await storage.calls.find(now.call) : undefined
    if (call) emit('call-ended', { call })
    return now
  }

  async function tooLate(approval: StoredApproval): Promise<GatewayError> {
    const now = (await approvals.find(approval.id)) ?? approval
    if (isOver(now))
      await expire(now).catch((error: unknown) =>
        log.warn({ code: toGatewayError(error).code }, 'an approval could not be expired'),
      )
    const { state, answers } = now
    if (state === 'waiting' && !isOver(now))
      return new GatewayError(
        'approval-answered',
        'Another person answered at the same time: read the approval again, then decide',
        {
          state,
        },
      )
    const last = answers.at(-1)
    const how =
      state === 'waiting' || state === 'expired' ? 'The approval has expired' : `The approval was ${words[state]}`
    const by = last && state !== 'expired' && state !== 'lapsed' ? ` by ${last.by}` : ''
    return new GatewayError('approval-answered', `${how}${by}`, { state: state === 'waiting' ? 'expired' : state })
  }
}

const words = {
  approved: 'approved',
  used: 'approved',
  lapsed: 'approved, but the call was not repeated in time',
  denied: 'denied',
  withdrawn: 'withdrawn',
} as const

/** The states in which the call has not run and will not run. */
const ended: ReadonlySet<ApprovalState> = new Set(['denied', 'expired', 'lapsed', 'withdrawn'])

function toAnswer({ by, verdict, reason }: GivenAnswer, now: number): ApprovalAnswer {
  return { by, verdict, at: toIso(now), ...(reason !== undefined && { reason }) }
}

/** One denial is enough. An approval may need two people. */
function nextState({ answers, approvers }: StoredApproval, { verdict }: ApprovalAnswer) {
  if (verdict === 'deny') return 'denied'
  return answers.length + 1 >= approvalsNeeded(approvers) ? 'approved' : 'waiting'
}

function tooMany(principal: string, most: number): GatewayError {
  const message = `${principal} has ${most} waiting approvals, which is the limit; try again when one is answered`
  return new GatewayError('limit-exceeded', message, { limit: 'pending', most, retryAfter: 30, retryAfterMs: 30_000 })
}
