import type { ApprovalStore, GrantCache } from '../approvals/approvals.ts'
import { type Catalog, inFormOf, type Target, type ViewSelector } from '../catalog/catalog.ts'
import { type ConfigStore, projectOf } from '../config/config.ts'
import type { Approval } from '../contract/approval.ts'
import type { Call, CallEndState } from '../contract/call.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { JsonObject } from '../contract/json.ts'
import {
  type CallEnd,
  type CallMethod,
  isTaskMethod,
  type Permit,
  type ResolvedCall,
  type Surface,
  toSentMeta,
} from '../contract/permit.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { driftWords } from '../definitions/definitions.ts'
import type { Clock } from '../lib/clock.ts'
import { crashPoint } from '../lib/crash-point.ts'
import type { Account } from '../lib/delivery.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Ids } from '../lib/ids.ts'
import { onAbort } from '../lib/signals.ts'
import type { Masking } from '../masking/masking.ts'
import { type Decision, decide, type Subject } from '../policy/policy.ts'
import type { Servers } from '../servers/servers.ts'
import { toUnusedApproval } from '../storage/claim.ts'
import type { Storage } from '../storage/storage.ts'
import { type Answer, isToolError } from '../wire/answer.ts'
import { type Caller, type CallerFacts, type Subscriber, toCaller } from '../wire/caller.ts'
import { createAsk, type Judged } from './ask.ts'
import { stopped, toEnd } from './end.ts'
import { createKeptResults } from './kept.ts'
import { createLimits, type Place } from './limits.ts'
import { createOnce, toKeyEnd } from './once.ts'
import { createOwnServer } from './own-server.ts'
import { createRecords, type HowItEnded } from './records.ts'
import { denied, notFound, stillApproved } from './refusals.ts'
import { createRefusedCalls } from './refused.ts'
import { fits, toDropped } from './results.ts'
import { createTasks } from './tasks.ts'

export { toResultPage } from './kept.ts'
export { approvalStatusName, readResultName, waitForApprovalName } from './own-names.ts'
export { waiting } from './refusals.ts'
export { createCallsRemover } from './remover.ts'

/** One request from a surface. */
export type CallRequest = {
  readonly principal: Principal
  readonly surface: Surface
  readonly selector: ViewSelector
  /** `tools/call` by default. */
  readonly method?: CallMethod
  /** The name or address as the caller sees it. */
  readonly name: string
  readonly arguments: JsonObject
  /** `_meta` for the server without trace context: judged, approved and recorded like the arguments. */
  readonly meta?: JsonObject | undefined
  /** W3C trace context from `_meta`: sent and recorded, but not part of what an approval is valid for. */
  readonly trace?: JsonObject | undefined
  /** Replies to questions of the server. */
  readonly input?: JsonObject | undefined
  /** A check by the surface that the rest of the request fits the target, such as its headers. */
  readonly check?: ((target: Target) => GatewayError | undefined) | undefined
  /** Idempotency key: of this principal's calls with the same key one runs, and the others get its outcome. */
  readonly key?: string | undefined
}

/** How a call ended: with the answer of the server, or with an error of the gateway. */
export type CallOutcome =
  | { readonly kind: 'answered'; readonly call: Call; readonly answer: Answer; readonly replayed?: true }
  | { readonly kind: 'refused'; readonly call: Call; readonly error: GatewayError }
  /** The call has not ended: it waits for approval. Repeating the same call continues it. */
  | { readonly kind: 'waiting'; readonly call: Call; readonly approval: Approval }

export type Calls = {
  advance(request: CallRequest, caller: CallerFacts): Promise<CallOutcome>
  running(): number
  /** The bytes buffered for a principal. */
  accountOf(principal: Principal): Account
  /** Refuses new calls, waits for running ones, then aborts them. */
  close(graceMs: number): Promise<void>
}

export type CallsParts = {
  readonly storage: Pick<
    Storage,
    | 'claim'
    | 'refuse'
    | 'countRefusals'
    | 'finish'
    | 'finishOnce'
    | 'markLate'
    | 'instance'
    | 'results'
    | 'keys'
    | 'calls'
  >
  readonly catalog: Pick<Catalog, 'resolve' | 'isListed'>
  readonly config: Pick<ConfigStore, 'effective' | 'current' | 'usedBy'>
  readonly approvalStore: ApprovalStore
  readonly grants: GrantCache
  readonly servers: Pick<Servers, 'send' | 'attach'>
  readonly masking: Pick<Masking, 'text' | 'value'>
  readonly clock: Clock
  readonly ids: Ids
  readonly emit: Emitter<EventTable>['emit']
  idOf(principal: Principal): string
}

export function createCalls(parts: CallsParts): Calls {
  const { storage, catalog, config, approvalStore, grants, servers, masking, clock, ids, emit } = parts
  const running = new Set<Promise<unknown>>()
  const sending = new Set<AbortController>()
  const tasks = createTasks(catalog)
  const limits = createLimits({ config, clock })
  const kept = createKeptResults({ storage, limits: () => config.current().limits, clock, ids })
  const ownServer = createOwnServer({ kept, approvalStore, clock })
  const once = createOnce({ keys: storage.keys, clock })
  const refused = createRefusedCalls({ storage, clock })
  const records = createRecords({ instance: storage.instance, masking, clock, ids })
  const ask = createAsk({
    storage,
    records,
    approvalStore,
    grants,
    config,
    limits,
    once,
    emit,
    judge,
    isListed: catalog.isListed,
    refuse: (call, why) => refuse(call, 'denied', why),
  })
  servers.attach(ownServer)
  let closing = false
  let stopping = false

  return { advance: begin, running: () => running.size, accountOf: limits.accountOf, close }

  /** A call is running until its last entry is written. `close` waits for running calls. */
  async function begin(wanted: CallRequest, facts: CallerFacts): Promise<CallOutcome> {
    if (closing) throw new GatewayError('shutting-down', 'The gateway is stopping and takes no new calls')
    const { principal } = wanted
    const request =
      principal.id === undefined ? { ...wanted, principal: { ...principal, id: parts.idOf(principal) } } : wanted
    const caller = toCaller(facts)
    const call = request.key === undefined ? advance(request, caller) : advanceOnce(request, caller)
    running.add(call)
    return call.finally(() => running.delete(call))
  }

  /** If another call takes the key first, this call tries again and then gets the outcome of that call. */
  async function advanceOnce(request: CallRequest, caller: Caller): Promise<CallOutcome> {
    for (let tries = 1; ; tries++) {
      try {
        return await advance(request, caller)
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'idempotency-busy' || tries >= mostTries) throw error
      }
    }
  }

  /** Every governed call passes these lines, in this order. */
  async function advance(request: CallRequest, caller: Caller): Promise<CallOutcome> {
    const judged = judge(request)
    if (judged instanceof GatewayError) return refuse(records.toUnknown(request), 'denied', judged)
    const { call, target, decision } = judged
    const unfit = request.check?.(target)
    if (unfit) return refuse(call, 'denied', unfit)
    if (decision.action === 'deny') return refuse(call, 'denied', denied(call))
    const earlier = call.once && (await once.findEarlier(call, caller.signal))
    if (earlier) return earlier.kind === 'refusal' ? refuse(call, 'denied', earlier.error) : earlier
    if (decision.action === 'allow') return claimAndSend(request, caller, call)
    const permissions = ask.permissions(request, caller, judged)
    try {
      let step = await permissions.next()
      while (!step.done) step = await permissions.next(await ifUnspent(claimAndSend(request, caller, step.value)))
      return step.value
    } finally {
      await permissions.return?.()
    }
  }

  function judge(request: CallRequest): Judged | GatewayError {
    const target = findTarget(request)
    if (target instanceof GatewayError) return target
    const subject = toSubject(request, target)
    const decision = allowStatusTools(target, decideOn(request, subject))
    return { call: records.toCall(request, target, decision), target, decision, subject }
  }

  /** Throws `permission-spent` when another call used the grant or approval first; nothing was sent then. */
  async function claimAndSend(request: CallRequest, caller: Caller, call: ResolvedCall): Promise<CallOutcome> {
    const place = limits.enter(request.principal, call)
    if (place instanceof GatewayError) return refuseNow(call, place)
    const permit = await claim(call, place)
    try {
      emit('call-started', { call: records.toRecord(call, { state: 'running' }) })
      const outcome = await send(permit, request.selector, toSender(request, caller, call))
      if (outcome.kind !== 'answered') return outcome
      tasks.noteAnswer(request, permit, outcome.answer)
      // The answer is buffered until the client has read it. A client that reads nothing must not fill the memory.
      const room = limits.buffer(place, outcome.answer.bytes.length)
      return room ? outcome : { ...outcome, answer: toDropped(outcome.answer, call.method) }
    } finally {
      const leave = () => limits.leave(place)
      if (caller.onDelivered) caller.onDelivered(leave)
      else leave()
    }
  }

  /** Durable before anything is sent, or nothing is sent. A refused claim leaves its place: the call may wait for a person now. */
  async function claim(call: ResolvedCall, place: Place): Promise<Permit> {
    try {
      crashPoint('before the claim')
      const permit = await storage.claim(call)
      crashPoint('after the claim')
      return permit
    } catch (error) {
      limits.leave(place)
      throw error
    }
  }

  /** An approved call over a limit keeps its approval, so that it can be repeated. */
  function refuseNow(call: ResolvedCall, why: GatewayError): Promise<CallOutcome> | CallOutcome {
    if (!call.permission || !('approval' in call.permission)) return refuse(call, 'denied', why)
    return { kind: 'refused', call: records.toRecord(call, { state: 'waiting' }), error: why }
  }

  /** The caller as the server reaches it. A call with a key is not cancelled with its request: the caller may return. */
  function toSender(request: CallRequest, caller: Caller, call: ResolvedCall): Caller {
    if (caller.subscriber) return { ...caller, subscriber: guarded(request, caller.subscriber) }
    return call.once ? { ...caller, signal: never } : caller
  }

  /** Judges each update again: rules may have changed, and a part of the resource may not be allowed. */
  function guarded(request: CallRequest, { signal, onUpdated }: Subscriber): Subscriber {
    return { signal, onUpdated: (uri) => void (mayReceive(request, uri) && onUpdated(uri)) }
  }

  function mayReceive(request: CallRequest, uri: string): boolean {
    const target = findTarget(request)
    if (target instanceof GatewayError || decideOn(request, toSubject(request, target)).action !== 'allow') return false
    if (uri === target.original) return true
    const part = findTarget({ ...request, name: inFormOf(request.name, uri) })
    const known = part instanceof GatewayError ? { ...target, publicName: uri } : part
    return decideOn(request, toSubject(request, known)).action === 'allow'
  }

  /** The target of a name, or the error for it. The caller of this function records both. */
  function findTarget({ principal, selector, method = 'tools/call', name }: CallRequest): Target | GatewayError {
    try {
      if (isTaskMethod(method)) return tasks.resolve(principal, name) ?? notFound(method, name)
      return catalog.resolve(principal, selector, method, name) ?? notFound(method, name)
    } catch (error) {
      if (error instanceof GatewayError) return error
      throw error
    }
  }

  async function send(permit: Permit, selector: ViewSelector, caller: Caller): Promise<CallOutcome> {
    let resent = false
    // Not `AbortSignal.any`: it costs as much as the rest of this function.
    const ending = new AbortController()
    const unlink = onAbort(caller.signal, () => ending.abort(caller.signal.reason))
    if (stopping) ending.abort(stopped())
    sending.add(ending)
    try {
      const sent = servers.send(
        permit,
        { ...caller, signal: ending.signal },
        {
          onLate: () => storage.markLate(permit.id),
          onResent: () => {
            resent = true
          },
        },
      )
      crashPoint('sent, and not answered')
      const answer = await sent
      crashPoint('after the answer')
      const fitting = permit.uncut || fits(answer, config.current().limits.result)
      const finished = fitting ? answer : await kept.finish(answer, permit, selector)
      return answered(permit, { answer, finished, resent })
    } catch (error) {
      const { state, error: why, unsent } = toEnd(permit, records.maskError(toGatewayError(error)), stopping)
      // If the call was sent a second time, the first attempt was sent, so the call is not unsent.
      const isUnsent = unsent === true && !resent
      const shown = isUnsent ? stillApproved(permit, why) : why
      const how = { state, error: shown, resent, ...(isUnsent && { unsent: true }) }
      return end(permit, how, (call) => ({ kind: 'refused', call, error: shown }))
    } finally {
      unlink()
      sending.delete(ending)
    }
  }

  /** The state of the call is taken from `answer`. The caller gets `finished`, which may be cut. */
  function answered(permit: Permit, given: { answer: Answer; finished: Answer; resent: boolean }) {
    const { answer, finished, resent } = given
    const how: Omit<HowItEnded, 'state'> = { resent, resultBytes: answer.bytes.length }
    if (finished !== answer) how.givenBytes = finished.bytes.length
    if (answer.masked > 0) {
      how.masked = answer.masked
      emit('secret-found', { server: permit.server, found: answer.masked, call: permit.id })
    }
    const toOutcome = (call: Call): CallOutcome => ({ kind: 'answered', call, answer: finished })
    if (answer.kind === 'error') {
      const error = new GatewayError('server-refused', 'The server answered with an error')
      return end(permit, { ...how, state: 'failed', error }, toOutcome)
    }
    return end(permit, { ...how, state: isToolError(answer) ? 'tool-error' : 'ok' }, toOutcome)
  }

  /** A call with a key ends when its outcome is stored, so that equal calls can get it. Other calls do not wait for storage. */
  function end(call: Permit, how: HowItEnded, toOutcome: (call: Call) => CallOutcome): Ended {
    const ended = records.toEnd(call, how)
    crashPoint('before the outcome')
    if (call.once) return endOnce(call, ended, toOutcome)
    storage.finish(call, ended)
    if (ended.unsent && call.permission) grants.refunded()
    crashPoint('the outcome is queued')
    return toOutcome(announce(call, ended))
  }

  async function endOnce(call: Permit, ended: CallEnd, toOutcome: (call: Call) => CallOutcome): Promise<CallOutcome> {
    const approval = toUnusedApproval(call, ended)
    const outcome = toOutcome(records.toRecord(call, approval === undefined ? ended : { state: 'waiting' }))
    await storage.finishOnce(call, ended, toKeyEnd(call, outcome, ended))
    crashPoint('the key has its answer')
    if (ended.unsent && call.permission) grants.refunded()
    if (approval === undefined) emit('call-ended', { call: outcome.call })
    else emit('call-waiting', { call: outcome.call, approval })
    return outcome
  }

  async function refuse(call: ResolvedCall, state: CallEndState, why: GatewayError): Promise<CallOutcome> {
    const error = records.maskError(why)
    const ended = records.toEnd(call, { state, error })
    if (await refused.record(call, ended)) return { kind: 'refused', call: announce(call, ended), error }
    return { kind: 'refused', call: { ...records.toRecord(call, ended), counted: true }, error }
  }

  function announce(call: ResolvedCall, ended: CallEnd): Call {
    const record = records.toRecord(call, ended)
    emit('call-ended', { call: record })
    return record
  }

  /** If the rules cannot be evaluated, the call is denied. */
  function decideOn({ principal }: CallRequest, subject: Subject): Decision {
    try {
      return decide(config.effective(principal).rules, subject)
    } catch {
      return { action: 'deny', because: 'the rules could not be evaluated', rule: undefined, approvers: [] }
    }
  }

  function toSubject(
    { principal, method = 'tools/call', name, arguments: given, meta, trace }: CallRequest,
    target: Target,
  ): Subject {
    const sent = { arguments: given, meta: toSentMeta({ meta, trace }) }
    return {
      ...(isTaskMethod(method) ? tasks.startedWith(principal, name) : sent),
      tool: target.publicName,
      server: target.server,
      risk: target.risk,
      principal: toPrincipalKey(principal),
      now: clock.now(),
      owner: principal.owner,
      project: projectOf(config.current(), principal),
      drifted: target.drifted && driftWords[target.drifted],
    }
  }

  async function close(graceMs: number): Promise<void> {
    closing = true
    ask.close()
    ownServer.close()
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = clock.after(graceMs, resolve)
    await Promise.race([Promise.allSettled(running), promise])
    cancel()
    stopping = true
    for (const ending of sending) ending.abort(stopped())
    await Promise.allSettled(running)
    kept.close()
    refused.close()
  }
}

type Ended = CallOutcome | Promise<CallOutcome>

/** A rule that requires approval for all tools must not apply to the tools that return the state of an approval. */
function allowStatusTools({ inProcess }: Target, decision: Decision): Decision {
  if (decision.action !== 'ask' || !inProcess?.neverAsks) return decision
  return { ...decision, action: 'allow', because: 'the tool only returns the state of an approval of the caller' }
}

/** Undefined if another call used the permission first. */
async function ifUnspent(outcome: Promise<CallOutcome>): Promise<CallOutcome | undefined> {
  try {
    return await outcome
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'permission-spent') return undefined
    throw error
  }
}

const never = new AbortController().signal
/** Another try is needed if another call had the key and released it because nothing was sent. */
const mostTries = 5
