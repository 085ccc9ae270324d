import type { ApprovalStore, GrantCache } from '../approvals/approvals.ts'
import { type Catalog, inFormOf, ownServer, type Target, type ViewSelector } from '../catalog/catalog.ts'
import { type ConfigStore, projectOf } from '../config/config.ts'
import type { Approval, Verdict } from '../contract/approval.ts'
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
import type { Account, Delivery } from '../lib/delivery.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Ids } from '../lib/ids.ts'
import { onAbort } from '../lib/signals.ts'
import type { Masking } from '../masking/masking.ts'
import { type Decision, decide, type Subject } from '../policy/policy.ts'
import type { Servers, Subscriber } from '../servers/servers.ts'
import { toUnusedApproval } from '../storage/claim.ts'
import type { Storage } from '../storage/storage.ts'
import { type Answer, isToolError } from '../wire/answer.ts'
import { type Caller, muteCaller } from '../wire/caller.ts'
import type { Progress } from '../wire/peer.ts'
import { createAsk, type Judged } from './ask.ts'
import { stopped, toEnd } from './end.ts'
import { createKeptResults } from './kept.ts'
import { createLimits } from './limits.ts'
import { createOnce, toKeyEnd } from './once.ts'
import { createOwnTools, withoutAsking } from './own.ts'
import { createRecords, type HowItEnded } from './records.ts'
import { denied, notFound, stillApproved } from './refusals.ts'
import { createRefusedCalls } from './refused.ts'
import { fits, toUnread } from './results.ts'
import { createTasks } from './tasks.ts'

export { toResultPage } from './kept.ts'
export { waiting } from './refusals.ts'
export { createCallsRemover } from './remover.ts'

/** One request, as a surface hands it in. */
export type CallRequest = {
  readonly principal: Principal
  readonly surface: Surface
  readonly selector: ViewSelector
  /** A call of a tool if nothing else is said. */
  readonly method?: CallMethod
  /** The name or address as the caller sees it. */
  readonly name: string
  readonly arguments: JsonObject
  /** `_meta` for the server without its trace context: part of what is judged, approved and recorded. */
  readonly meta?: JsonObject | undefined
  /** W3C trace context, as `_meta` carries it: sent and recorded, but not bound by an approval. */
  readonly trace?: JsonObject | undefined
  /** Answers to a server's questions that the caller brings along. */
  readonly input?: JsonObject | undefined
  /** What else the surface knows of the request must fit what it is for. */
  readonly check?: ((target: Target) => GatewayError | undefined) | undefined
  /** Of this principal's calls with the same key one runs, and the others get what it got. */
  readonly key?: string | undefined
}

export type CallOptions = {
  readonly signal: AbortSignal
  /** Who can be asked, and told what the server logs. */
  readonly caller?: Caller | undefined
  readonly subscriber?: Subscriber | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** How whoever waits is shown that a person is asked; who has none hears at once that it waits. */
  readonly present?: Present | undefined
  /** Tells when the answer has reached its client; without it the call leaves its place as soon as it has ended. */
  readonly delivery?: Pick<Delivery, 'onEnd'> | undefined
}

/**
 * Shows a question in the form of a surface, until it is settled or has been held long enough. Tells what a person
 * said right there, where a rule lets them answer at the agent's own program.
 */
export type Present = (question: Approval, wait: Wait) => Promise<SaidThere | undefined>
export type Wait = { readonly settled: Promise<void>; readonly signal: AbortSignal }
export type SaidThere = { readonly verdict: Verdict; readonly reason?: string | undefined }

/** How a call ended: with what the server answered, or with what Sallyport says instead. */
export type CallOutcome =
  | { readonly kind: 'answered'; readonly call: Call; readonly answer: Answer; readonly replayed?: true }
  | { readonly kind: 'refused'; readonly call: Call; readonly error: GatewayError }
  /** It has not ended: a person is asked, and the same call made again goes on. */
  | { readonly kind: 'waiting'; readonly call: Call; readonly approval: Approval }

export type Calls = {
  advance(request: CallRequest, options: CallOptions): Promise<CallOutcome>
  running(): number
  /** The bytes that are buffered for a principal. */
  accountOf(principal: Principal): Account
  /** Takes nothing new, gives what is under way a moment, then ends it. */
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
  readonly servers: Pick<Servers, 'send'>
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
  const own = createOwnTools({ kept, approvalStore, clock })
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
    run,
  })
  let closing = false
  let stopping = false

  return { advance: begin, running: () => running.size, accountOf: limits.accountOf, close }

  /** From its first line to its last entry a call is under way, and whoever closes waits for it. */
  async function begin(wanted: CallRequest, options: CallOptions): Promise<CallOutcome> {
    if (closing) throw new GatewayError('shutting-down', 'The gateway is stopping and takes no new calls')
    const { principal } = wanted
    const request =
      principal.id === undefined ? { ...wanted, principal: { ...principal, id: parts.idOf(principal) } } : wanted
    const call = request.key === undefined ? advance(request, options) : advanceOnce(request, options)
    running.add(call)
    return call.finally(() => running.delete(call))
  }

  /** Whoever loses the race for a key finds it taken the next time; whoever hangs up may come back for the result. */
  async function advanceOnce(request: CallRequest, options: CallOptions): Promise<CallOutcome> {
    for (let tries = 1; ; tries++) {
      try {
        return await advance(request, options)
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'idempotency-busy' || tries >= mostTries) throw error
      }
    }
  }

  /** Every governed call passes these lines, in this order. */
  async function advance(request: CallRequest, options: CallOptions): Promise<CallOutcome> {
    const judged = judge(request)
    if (judged instanceof GatewayError) return refuse(records.toUnknown(request), 'denied', judged)
    const { call, target, decision } = judged
    const unfit = request.check?.(target)
    if (unfit) return refuse(call, 'denied', unfit)
    if (decision.action === 'deny') return refuse(call, 'denied', denied(call))
    const earlier = call.once && (await once.findEarlier(call, options.signal))
    if (earlier) return earlier.kind === 'refusal' ? refuse(call, 'denied', earlier.error) : earlier
    if (decision.action === 'ask') return ask.pass(request, options, judged)
    return run(request, options, call)
  }

  function judge(request: CallRequest): Judged | GatewayError {
    const target = findTarget(request)
    if (target instanceof GatewayError) return target
    const subject = toSubject(request, target)
    const decision = withoutAsking(target, decideOn(request, subject))
    return { call: records.toCall(request, target, decision), target, decision, subject }
  }

  async function run(request: CallRequest, options: CallOptions, call: ResolvedCall): Promise<CallOutcome> {
    const place = limits.enter(request.principal, call)
    if (place instanceof GatewayError) return refuseNow(call, place)
    try {
      crashPoint('before the claim')
      const permit = await storage.claim(call) // durable before anything is sent, or nothing is sent
      crashPoint('after the claim')
      emit('call-started', { call: records.toRecord(call, { state: 'running' }) })
      const outcome = await send(permit, request.selector, toAttended(request, options, call))
      if (outcome.kind !== 'answered') return outcome
      tasks.noteAnswer(request, permit, outcome.answer)
      // Until its client has read it, or not at all: a client that reads nothing must not fill the memory.
      const room = limits.hold(place, outcome.answer.bytes.length)
      return room ? outcome : { ...outcome, answer: toUnread(outcome.answer, call.method) }
    } finally {
      const leave = () => limits.leave(place)
      if (options.delivery) options.delivery.onEnd(leave)
      else leave()
    }
  }

  /** A call that was approved stays good for its outcome: waiting ends, and the approval with it, when it was run. */
  function refuseNow(call: ResolvedCall, why: GatewayError): Promise<CallOutcome> | CallOutcome {
    if (!call.permission || !('question' in call.permission)) return refuse(call, 'denied', why)
    return { kind: 'refused', call: records.toRecord(call, { state: 'waiting' }), error: why }
  }

  function toAttended(request: CallRequest, options: CallOptions, call: ResolvedCall): CallOptions {
    if (options.subscriber) return guarded(request, options, options.subscriber)
    return call.once ? { ...options, signal: never } : options
  }

  /** What was allowed when it was asked for may be denied by now, and a part of it may never have been allowed. */
  function guarded(request: CallRequest, options: CallOptions, { signal, onUpdated }: Subscriber): CallOptions {
    const tell = (uri: string) => void (mayHear(request, uri) && onUpdated(uri))
    return { ...options, subscriber: { signal, onUpdated: tell } }
  }

  function mayHear(request: CallRequest, uri: string): boolean {
    const target = findTarget(request)
    if (target instanceof GatewayError || decideOn(request, toSubject(request, target)).action !== 'allow') return false
    if (uri === target.original) return true
    const part = findTarget({ ...request, name: inFormOf(request.name, uri) })
    const known = part instanceof GatewayError ? { ...target, publicName: uri } : part
    return decideOn(request, toSubject(request, known)).action === 'allow'
  }

  /** What stands behind the name, or why there is none: also an address that leads nowhere was tried by somebody. */
  function findTarget({ principal, selector, method = 'tools/call', name }: CallRequest): Target | GatewayError {
    try {
      if (isTaskMethod(method)) return tasks.resolve(principal, name) ?? notFound(method, name)
      return catalog.resolve(principal, selector, method, name) ?? notFound(method, name)
    } catch (error) {
      if (error instanceof GatewayError) return error
      throw error
    }
  }

  async function send(permit: Permit, selector: ViewSelector, options: CallOptions): Promise<CallOutcome> {
    let resent = false
    // By hand instead of `AbortSignal.any`, which costs as much as the rest of this function.
    const ending = new AbortController()
    const unlink = onAbort(options.signal, () => ending.abort(options.signal.reason))
    if (stopping) ending.abort(stopped())
    sending.add(ending)
    try {
      if (permit.connection === ownServer) return await answerOwn(permit, ending.signal)
      const sent = servers.send(permit, {
        signal: ending.signal,
        caller: options.caller ?? muteCaller,
        subscriber: options.subscriber,
        onProgress: options.onProgress,
        onLate: () => storage.markLate(permit.id),
        onResent: () => {
          resent = true
        },
      })
      crashPoint('sent, and not answered')
      const answer = await sent
      crashPoint('after the answer')
      const fitting = fits(answer, config.current().limits.result)
      const finished = fitting ? answer : await kept.finish(answer, permit, selector)
      return answered(permit, { answer, finished, resent })
    } catch (error) {
      const { state, error: why, unsent } = toEnd(permit, records.maskError(toGatewayError(error)), stopping)
      // What was refused and sent again has left, whatever became of the second time.
      const isUnsent = unsent === true && !resent
      const told = isUnsent ? stillApproved(permit, why) : why
      const how = { state, error: told, resent, ...(isUnsent && { unsent: true }) }
      return end(permit, how, (call) => ({ kind: 'refused', call, error: told }))
    } finally {
      unlink()
      sending.delete(ending)
    }
  }

  async function answerOwn(permit: Permit, signal: AbortSignal): Promise<CallOutcome> {
    const answer = await own.answer(permit, signal)
    return answered(permit, { answer, finished: answer, resent: false })
  }

  /** How it went is what the server said; what the caller gets may be less. */
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

  /** A call with a key ends when what it leaves for the others is on disk; any other ends at once. */
  function end(call: Permit, how: HowItEnded, toOutcome: (call: Call) => CallOutcome): Ended {
    const ended = records.toEnd(call, how)
    crashPoint('before the outcome')
    if (call.once) return endOnce(call, ended, toOutcome)
    storage.finish(call, ended)
    if (ended.unsent && call.permission) grants.refunded()
    crashPoint('the outcome is on its way')
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

  /** A policy that cannot be asked denies. */
  function decideOn({ principal }: CallRequest, subject: Subject): Decision {
    try {
      return decide(config.effective(principal).rules, subject)
    } catch {
      return { action: 'deny', because: 'the rules could not be asked', rule: undefined, approvers: [] }
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
    own.close()
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

/** For calls that go on without whoever asked: a key is for coming back. */
const never = new AbortController().signal
/** Each time somebody else had the key, and gave it back because nothing was done. */
const mostTries = 5
