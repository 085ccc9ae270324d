import { hash } from 'node:crypto'
import type { About, ApprovalStore, GrantCache } from '../approvals/approvals.ts'
import type { Target } from '../catalog/catalog.ts'
import type { ConfigStore } from '../config/config.ts'
import type { Call } from '../contract/call.ts'
import { GatewayError, recall } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Permission, ResolvedCall } from '../contract/permit.ts'
import { type Principal, toPrincipalKey, userBehind } from '../contract/principal.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import type { Emitter } from '../lib/emitter.ts'
import { onAbort } from '../lib/signals.ts'
import { type Decision, hashOf, type Subject, toCallHash, toTitle } from '../policy/policy.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredApproval } from '../storage/tables/approvals.ts'
import { toApprovalKey } from '../storage/tables/idempotency.ts'
import type { Caller } from '../wire/caller.ts'
import type { CallOutcome, CallRequest } from './calls.ts'
import type { CallLimits } from './limits.ts'
import type { Once } from './once.ts'
import type { Records } from './records.ts'
import {
  changedSinceApproval,
  denied,
  deniedByPerson,
  expired,
  serverDisconnected,
  tooManyWaiting,
  withdrawn,
} from './refusals.ts'

/** A call with its target and the decision about it. */
export type Judged = {
  readonly call: ResolvedCall
  readonly target: Target
  readonly decision: Decision
  readonly subject: Subject
}

/** A call with the grant or approval that its claim has to use. */
export type Permitted = ResolvedCall & { readonly permission: Permission }

/**
 * The permissions for one call, in the order in which they are tried. `advance` claims each and passes back how the call ended,
 * or undefined if another call had used the permission before. The last value is the outcome of the call.
 */
export type Permissions = AsyncIterator<Permitted, CallOutcome, CallOutcome | undefined>

type Asking<Ended = CallOutcome | undefined> = AsyncGenerator<Permitted, Ended, CallOutcome | undefined>

export type Ask = {
  /** For a call that requires approval: first grants, then an approval by a person. */
  permissions(request: CallRequest, caller: Caller, judged: Judged): Permissions
  /** Ends the requests that are held open for a person. */
  close(): void
}

type AskParts = {
  readonly storage: Pick<Storage, 'calls'>
  readonly records: Pick<Records, 'toRecord' | 'mask'>
  readonly approvalStore: ApprovalStore
  readonly grants: GrantCache
  readonly config: Pick<ConfigStore, 'effective' | 'usedBy'>
  readonly limits: Pick<CallLimits, 'mostPending'>
  readonly once: Once
  readonly emit: Emitter<EventTable>['emit']
  /** Judges the request again: rules and definitions may have changed since the approval was requested. */
  judge(request: CallRequest): Judged | GatewayError
  /** Whether the server behind a connection has listed its tools. */
  isListed(connection: string): boolean
  refuse(call: ResolvedCall, why: GatewayError): Promise<CallOutcome>
}

/** Waiting approvals of a principal are limited, but equal calls join one approval. Each held request costs a socket. */
const mostAsking = 500
/** How often another call may use or change the approval before this call gives up. */
const mostRounds = 20

export function createAsk(parts: AskParts): Ask {
  const { storage, records, approvalStore, grants, config, limits, once } = parts
  const closing = new AbortController()
  /** By principal, the number of its requests that wait for a person. */
  const asking = new Map<string, number>()

  return { permissions, close: () => closing.abort() }

  async function* permissions(request: CallRequest, caller: Caller, judged: Judged): Asking<CallOutcome> {
    const granted = yield* byGrant(request, judged)
    if (granted) return granted
    const { principal } = judged.call
    if ((asking.get(principal) ?? 0) >= mostAsking) return parts.refuse(judged.call, tooManyWaiting(principal))
    count(principal, 1)
    try {
      return yield* byApproval(request, caller, judged)
    } finally {
      count(principal, -1)
    }
  }

  function count(principal: string, more: number): void {
    const now = (asking.get(principal) ?? 0) + more
    if (now > 0) asking.set(principal, now)
    else asking.delete(principal)
  }

  async function* byGrant(request: CallRequest, judged: Judged): Asking {
    const found = grants.find(toGrantee(request.principal, judged))
    if (found.length === 0) return undefined
    // If this call has an answered approval, that is used first: a grant that was given with the answer is for later calls.
    const { hash: callHash } = toAbout(request.principal, judged)
    if (await approvalStore.findAnswered(judged.call.principalId, callHash)) return undefined
    for (const { id, givenBy } of found) {
      const decision = `allowed by a grant of ${givenBy}`
      const outcome = yield { ...judged.call, decision, permission: { grant: id } }
      if (outcome) return outcome
      grants.drop(id)
    }
    return undefined
  }

  function toGrantee(principal: Principal, { call, subject, target, decision }: Judged) {
    const owner = userBehind(principal)
    return {
      ...subject,
      principalId: call.principalId,
      owner,
      bound: call.meta,
      bringsAnswers: call.input?.inputResponses !== undefined || call.input?.requestState !== undefined,
      definition: definitionOf(target),
      scopes: scopesOf(principal),
      approvers: decision.approvers,
    }
  }

  async function* byApproval(request: CallRequest, caller: Caller, judged: Judged): Asking<CallOutcome> {
    const most = limits.mostPending(request.principal)
    const requested = await approvalStore.request(judged.call, toAbout(request.principal, judged), most)
    if (requested instanceof GatewayError) return parts.refuse(judged.call, requested)
    const startedAt = Date.parse(requested.requestedAt)
    const call = { ...judged.call, id: requested.call, startedAt, begun: undefined }
    const isNew = requested.call === judged.call.id
    if (isNew) parts.emit('call-waiting', { call: toWaiting(call), approval: requested.id })
    let approval = requested.state === 'waiting' ? await present(requested, caller) : requested
    for (let round = 0; round < mostRounds && approval.state !== 'waiting'; round++) {
      const outcome = yield* settle({ request, caller, approval, call })
      if (outcome) return deliver(approval, outcome, caller.signal)
      approval = await approvalStore.refresh(approval)
    }
    return { kind: 'waiting', call: toWaiting(call), approval }
  }

  /** The surface shows the approval until it is answered, or until the surface stops holding the request open. */
  async function present(approval: StoredApproval, caller: Caller): Promise<StoredApproval> {
    if (!caller.present) return approval
    const ending = new AbortController()
    const end = () => ending.abort()
    const unlinks = [caller.signal, closing.signal].map((each) => onAbort(each, end))
    const settled = approvalStore.settled(approval, ending.signal).then(
      () => {},
      () => {},
    )
    try {
      const given = await caller.present(approval, { settled, signal: ending.signal })
      if (caller.signal.aborted) throw new GatewayError('call-cancelled', 'The caller stopped waiting for an answer')
      if (given && approval.approvers.includes('client')) {
        // If somebody else has answered first, that answer is used.
        await approvalStore.answer(approval, { ...given, by: approval.principal }).catch(ignoreLate)
      }
      return await approvalStore.refresh(approval)
    } finally {
      end()
      for (const unlink of unlinks) unlink()
    }
  }

  type Settling = {
    readonly request: CallRequest
    readonly caller: Caller
    readonly approval: StoredApproval
    readonly call: ResolvedCall
  }

  /** How an approval that no longer waits ends this call; undefined when it was used or changed by another call. */
  async function* settle(settling: Settling): Asking {
    const { approval, call, caller } = settling
    if (approval.state === 'approved') return yield* runApproved(settling)
    if (approval.state === 'used') return outcomeOf(approval, call, caller.signal)
    return refused(call, approval)
  }

  /** The request is judged again: an approval is only for the call that was shown, and a rule may deny it now. */
  async function* runApproved({ request, caller, approval, call }: Settling): Asking {
    if (caller.signal.aborted)
      throw new GatewayError('call-cancelled', 'The caller cancelled before the call could run')
    const now = parts.judge(request)
    if (now instanceof GatewayError)
      return parts.isListed(call.connection) ? withdraw(approval, now) : refuseDisconnected(call, approval)
    const problem = whyNotRun(request.principal, now, approval)
    if (problem) return withdraw(approval, problem)
    const by = approval.answers.map((answer) => answer.by).join(' and ')
    return yield {
      ...now.call,
      id: call.id,
      startedAt: call.startedAt,
      begun: undefined,
      once: call.once ?? { key: toApprovalKey(approval.id), hash: approval.hash },
      permission: { approval: approval.id },
      decision: `approved by ${by}`,
    }
  }

  /** A disconnected server may return before the approval expires. Until then the approval is kept. */
  function refuseDisconnected(call: ResolvedCall, approval: StoredApproval): CallOutcome {
    return { kind: 'refused', call: toWaiting(call), error: serverDisconnected(call, approval) }
  }

  async function withdraw(approval: StoredApproval, { message }: GatewayError): Promise<undefined> {
    await approvalStore.withdraw(approval, message)
  }

  function whyNotRun(principal: Principal, now: Judged, approval: StoredApproval): GatewayError | undefined {
    const { action, approvers } = now.decision
    if (action === 'deny') return denied(now.call)
    // The rules may require other approvers now.
    if (action === 'ask' && !sameSet(approvers, approval.approvers)) return changedSinceApproval(now.call)
    return toAbout(principal, now).hash === approval.hash ? undefined : changedSinceApproval(now.call)
  }

  /** An equal call of the same principal used the approval. This call gets the same outcome. */
  async function outcomeOf(
    approval: StoredApproval,
    call: ResolvedCall,
    signal: AbortSignal,
  ): Promise<CallOutcome | undefined> {
    const earlier = await once.findOf(approval.call, signal)
    if (earlier?.kind === 'answered') return earlier
    const record = (await storage.calls.find(approval.call)) ?? records.toRecord(call, { state: 'unknown' })
    if (earlier) return { kind: 'refused', call: record, error: earlier.error }
    // Nothing was sent, and the approval is unused again: this call can use it.
    if (record.state === 'waiting') return undefined
    const { code, message } = record.error ?? { code: 'call-unknown', message: 'The outcome of the call is not known' }
    return { kind: 'refused', call: record, error: recall(code, message) }
  }

  async function refused(call: ResolvedCall, approval: StoredApproval): Promise<CallOutcome> {
    const state = approval.state === 'expired' || approval.state === 'lapsed' ? 'expired' : 'denied'
    const record = (await storage.calls.find(approval.call)) ?? records.toRecord(call, { state })
    return { kind: 'refused', call: record, error: toRefusal(approval, record.error) }
  }

  /** Until the outcome is delivered, an equal call gets the same outcome, so a caller whose request failed can repeat it. */
  async function deliver(approval: StoredApproval, outcome: CallOutcome, signal: AbortSignal): Promise<CallOutcome> {
    const { state } = outcome.call
    if (!signal.aborted && state !== 'waiting' && state !== 'running') await approvalStore.deliver(approval)
    return outcome
  }

  function toWaiting(call: ResolvedCall): Call {
    return records.toRecord(call, { state: 'waiting' })
  }

  function toAbout(principal: Principal, { call, target, decision }: Judged): About {
    const definition = definitionOf(target)
    const shown = call.recorded ?? call
    const owner = userBehind(principal)
    const serverTitle = findDefinition(principal, call)?.title
    return {
      ...(owner !== undefined && { owner }),
      ...(serverTitle !== undefined && { serverTitle }),
      hash: toCallHash({
        principal: call.principal,
        method: call.method,
        connection: call.connection,
        credential: credentialOf(principal, call),
        tool: call.original,
        definition,
        arguments: call.arguments,
        ...(call.input && { input: call.input }),
        ...(call.meta && { meta: call.meta }),
      }),
      ...(call.input && { input: records.mask(call.input) }),
      ...(call.meta && { meta: records.mask(call.meta), metaHash: hashOf(call.meta) }),
      definition,
      argumentsHash: hashOf(call.arguments),
      title: toTitle(shown.original, toObject(shown.arguments)),
      ...(target.description && { description: target.description }),
      ...(target.drifted && target.difference && { drift: { kind: target.drifted, difference: target.difference } }),
      reason: decision.because,
      approvers: [...decision.approvers],
    }
  }

  /** Hash of the server's definition with the names of its secrets, not the values, so that a rotated secret changes nothing. */
  function credentialOf(principal: Principal, call: ResolvedCall): string {
    return hash('sha256', toCanonicalText(findDefinition(principal, call) ?? null), 'hex')
  }

  function findDefinition(principal: Principal, { server }: ResolvedCall): ServerDefinition | undefined {
    return config.effective(principal).servers.get(server)?.definition
  }

  function scopesOf(principal: Principal): readonly ScopeKey[] {
    if (principal.kind === 'user') return ['global', toPrincipalKey(principal) as ScopeKey]
    return [...config.usedBy(principal)]
  }
}

function toRefusal(approval: StoredApproval, recorded: Call['error']): GatewayError {
  if (approval.state === 'denied') return deniedByPerson(approval)
  if (approval.state === 'expired' || approval.state === 'lapsed') return expired(approval)
  return recorded ? recall(recorded.code, recorded.message) : withdrawn(approval)
}

/** Resources have no definition; for them the hash is empty. */
function definitionOf({ hash: definition = '' }: Target): string {
  return definition
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each) => b.includes(each))
}

function toObject(value: unknown): JsonObject {
  return value as JsonObject // arguments are always an object, masked or not
}

function ignoreLate(error: unknown): void {
  if (!(error instanceof GatewayError) || error.code !== 'approval-answered') throw error
}
