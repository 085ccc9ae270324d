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
import { toCanonicalText } from '../lib/canonical.ts'
import type { Emitter } from '../lib/emitter.ts'
import { onAbort } from '../lib/signals.ts'
import { bindingOf, type Decision, hashOf, type Subject, toTitle } from '../policy/policy.ts'
import type { Storage } from '../storage/storage.ts'
import { toApprovalKey } from '../storage/tables/idempotency.ts'
import type { StoredQuestion } from '../storage/tables/questions.ts'
import type { CallOptions, CallOutcome, CallRequest } from './calls.ts'
import type { CallLimits } from './limits.ts'
import type { Once } from './once.ts'
import type { Records } from './records.ts'
import { changedMeanwhile, denied, deniedByPerson, expired, serverAway, tooManyAsk, withdrawn } from './refusals.ts'

/** A call with all that was decided about it. */
export type Judged = {
  readonly call: ResolvedCall
  readonly target: Target
  readonly decision: Decision
  readonly subject: Subject
}

export type Ask = {
  /** A call that a rule asks about: a grant lets it run, or a person, or it does not run. */
  pass(request: CallRequest, options: CallOptions, judged: Judged): Promise<CallOutcome>
  /** Whoever is held open for a person is let go. */
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
  /** Looks at the request again: what stood when it was asked may stand no longer. */
  judge(request: CallRequest): Judged | GatewayError
  /** Whether the server behind a connection is there. */
  isListed(connection: string): boolean
  refuse(call: ResolvedCall, why: GatewayError): Promise<CallOutcome>
  /** Claims and sends; throws `permission-spent` when somebody else was faster, and then nothing has happened. */
  run(request: CallRequest, options: CallOptions, call: ResolvedCall): Promise<CallOutcome>
}

/** Questions are bounded, but not how often the same call is made; each that is held costs a connection. */
const mostAsking = 500
/** Each time the question was another one when it was looked at again. */
const mostRounds = 20

export function createAsk(parts: AskParts): Ask {
  const { storage, records, approvalStore, grants, config, limits, once } = parts
  const leaving = new AbortController()
  /** By principal, how many of its calls a person is asked about, those that joined included. */
  const asking = new Map<string, number>()

  return { pass, close: () => leaving.abort() }

  async function pass(request: CallRequest, options: CallOptions, judged: Judged): Promise<CallOutcome> {
    const outcome = await spendGrant(request, options, judged)
    if (outcome) return outcome
    const { principal } = judged.call
    if ((asking.get(principal) ?? 0) >= mostAsking) return parts.refuse(judged.call, tooManyAsk(principal))
    count(principal, 1)
    return askPerson(request, options, judged).finally(() => count(principal, -1))
  }

  function count(principal: string, more: number): void {
    const now = (asking.get(principal) ?? 0) + more
    if (now > 0) asking.set(principal, now)
    else asking.delete(principal)
  }

  async function spendGrant(
    request: CallRequest,
    options: CallOptions,
    judged: Judged,
  ): Promise<CallOutcome | undefined> {
    const found = grants.find(toGrantee(request.principal, judged))
    if (found.length === 0) return undefined
    // What a person said to this very call comes first: a grant that was given with it is for those that follow.
    const { hash: binding } = toAbout(request.principal, judged)
    if (await approvalStore.findAnswered(judged.call.principalId, binding)) return undefined
    for (const { id, givenBy } of found) {
      const decision = `a grant of ${givenBy} permits it`
      const outcome = await attempt(request, options, { ...judged.call, decision, permission: { grant: id } })
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

  /** Undefined when the permission was gone: nothing has happened. */
  async function attempt(
    request: CallRequest,
    options: CallOptions,
    call: Permitted,
  ): Promise<CallOutcome | undefined> {
    try {
      return await parts.run(request, options, call)
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'permission-spent') return undefined
      throw error
    }
  }

  async function askPerson(request: CallRequest, options: CallOptions, judged: Judged): Promise<CallOutcome> {
    const most = limits.mostPending(request.principal)
    const asked = await approvalStore.ask(judged.call, toAbout(request.principal, judged), most)
    if (asked instanceof GatewayError) return parts.refuse(judged.call, asked)
    const call = { ...judged.call, id: asked.call, startedAt: Date.parse(asked.askedAt), begun: undefined }
    if (asked.call === judged.call.id) parts.emit('call-waiting', { call: toWaiting(call), approval: asked.id })
    let question = asked
    for (let round = 0; round < mostRounds; round++) {
      if (question.state === 'waiting') {
        if (round > 0 || !options.present) break
        question = await present(question, options)
        continue
      }
      const outcome = await settle(request, options, question, call)
      if (outcome) return await deliver(question, outcome, options.signal)
      question = await approvalStore.look(question)
    }
    return { kind: 'waiting', call: toWaiting(call), approval: question }
  }

  /** The surface shows it until it is answered, or until it has waited long enough. */
  async function present(question: StoredQuestion, options: CallOptions): Promise<StoredQuestion> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const unlinks = [options.signal, leaving.signal].map((each) => onAbort(each, end))
    const settled = approvalStore.settled(question, ending.signal).then(
      () => {},
      () => {},
    )
    try {
      const said = await options.present?.(question, { settled, signal: ending.signal })
      if (options.signal.aborted) throw new GatewayError('call-cancelled', 'The caller stopped waiting for an answer')
      if (said && question.approvers.includes('client')) {
        // Whoever was faster counts, and the round that follows sees it.
        await approvalStore.answer(question, { ...said, by: question.principal }).catch(ignoreLate)
      }
      return await approvalStore.look(question)
    } finally {
      end()
      for (const unlink of unlinks) unlink()
    }
  }

  /** How a question that no longer waits ends this call; undefined when somebody used it meanwhile. */
  async function settle(
    request: CallRequest,
    options: CallOptions,
    question: StoredQuestion,
    call: ResolvedCall,
  ): Promise<CallOutcome | undefined> {
    if (question.state === 'approved') return run(request, options, question, call)
    if (question.state === 'used') return outcomeOf(question, call, options.signal)
    return refused(call, question)
  }

  /** Everything is looked at again: an approval is for what was asked, and a rule may deny it by now. */
  async function run(
    request: CallRequest,
    options: CallOptions,
    question: StoredQuestion,
    call: ResolvedCall,
  ): Promise<CallOutcome | undefined> {
    if (options.signal.aborted) throw new GatewayError('call-cancelled', 'The caller left before it could run')
    const now = parts.judge(request)
    if (now instanceof GatewayError && !parts.isListed(call.connection)) return refuseAway(call, question)
    if (now instanceof GatewayError) return takeBack(question, now)
    const problem = whyNotRun(request.principal, now, question)
    if (problem) return takeBack(question, problem)
    const by = question.answers.map((answer) => answer.by).join(' and ')
    const once = call.once ?? { key: toApprovalKey(question.id), hash: question.hash }
    const permission = { question: question.id }
    const { id, startedAt } = call
    return attempt(request, options, {
      ...now.call,
      id,
      startedAt,
      begun: undefined,
      once,
      permission,
      decision: `approved by ${by}`,
    })
  }

  /** A server that is away may come back in time: until then the approval is good for the same call. */
  function refuseAway(call: ResolvedCall, question: StoredQuestion): CallOutcome {
    return { kind: 'refused', call: toWaiting(call), error: serverAway(call, question) }
  }

  async function takeBack(question: StoredQuestion, { message }: GatewayError): Promise<undefined> {
    await approvalStore.withdraw(question, message)
  }

  function whyNotRun(principal: Principal, now: Judged, question: StoredQuestion): GatewayError | undefined {
    const { action, approvers } = now.decision
    if (action === 'deny') return denied(now.call)
    // Who was asked may not be who has to be asked by now.
    if (action === 'ask' && !sameSet(approvers, question.approvers)) return changedMeanwhile(now.call)
    return toAbout(principal, now).hash === question.hash ? undefined : changedMeanwhile(now.call)
  }

  /** An equal call of the same principal ran, and this one gets what that one got. */
  async function outcomeOf(
    question: StoredQuestion,
    call: ResolvedCall,
    signal: AbortSignal,
  ): Promise<CallOutcome | undefined> {
    const earlier = await once.findOf(question.call, signal)
    if (earlier?.kind === 'answered') return earlier
    const record = (await storage.calls.find(question.call)) ?? records.toRecord(call, { state: 'unknown' })
    if (earlier) return { kind: 'refused', call: record, error: earlier.error }
    // Nothing of it was sent, and the approval is unused again: this call may run by it.
    if (record.state === 'waiting') return undefined
    const { code, message } = record.error ?? { code: 'call-unknown', message: 'How it ended is not known any more' }
    return { kind: 'refused', call: record, error: recall(code, message) }
  }

  async function refused(call: ResolvedCall, question: StoredQuestion): Promise<CallOutcome> {
    const state = question.state === 'expired' || question.state === 'lapsed' ? 'expired' : 'denied'
    const record = (await storage.calls.find(question.call)) ?? records.toRecord(call, { state })
    return { kind: 'refused', call: record, error: toRefusal(question, record.error) }
  }

  /** Until then an equal call gets the same outcome: whoever hung up can come back for it. */
  async function deliver(question: StoredQuestion, outcome: CallOutcome, signal: AbortSignal): Promise<CallOutcome> {
    const { state } = outcome.call
    if (!signal.aborted && state !== 'waiting' && state !== 'running') await approvalStore.deliver(question)
    return outcome
  }

  function toWaiting(call: ResolvedCall): Call {
    return records.toRecord(call, { state: 'waiting' })
  }

  function toAbout(principal: Principal, { call, target, decision }: Judged): About {
    const definition = definitionOf(target)
    const shown = call.recorded ?? call
    const owner = userBehind(principal)
    return {
      ...(owner !== undefined && { owner }),
      hash: bindingOf({
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

  /** How the server is reached and with which secrets, by their names: a rotated value is the same credential. */
  function credentialOf(principal: Principal, { server }: ResolvedCall): string {
    const definition = config.effective(principal).servers.get(server)?.definition
    return hash('sha256', toCanonicalText(definition ?? null), 'hex')
  }

  function scopesOf(principal: Principal): readonly ScopeKey[] {
    if (principal.kind === 'user') return ['global', toPrincipalKey(principal) as ScopeKey]
    return [...config.usedBy(principal)]
  }
}

type Permitted = ResolvedCall & { readonly permission: Permission }

function toRefusal(question: StoredQuestion, recorded: Call['error']): GatewayError {
  if (question.state === 'denied') return deniedByPerson(question)
  if (question.state === 'expired' || question.state === 'lapsed') return expired(question)
  return recorded ? recall(recorded.code, recorded.message) : withdrawn(question)
}

/** What runs may have no definition of its own, such as a resource. */
function definitionOf({ hash: definition = '' }: Target): string {
  return definition
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each) => b.includes(each))
}

function toObject(value: unknown): JsonObject {
  return value as JsonObject // arguments are an object, masked or not
}

function ignoreLate(error: unknown): void {
  if (!(error instanceof GatewayError) || error.code !== 'approval-answered') throw error
}
