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
import type { NewQuestion, StoredQuestion } from '../storage/tables/questions.ts'
import { createWaiters } from './waiters.ts'

/** What a person has to know, and what the answer is bound to. */
export type About = Pick<
  NewQuestion,
  | 'hash'
  | 'definition'
  | 'argumentsHash'
  | 'metaHash'
  | 'title'
  | 'description'
  | 'reason'
  | 'approvers'
  | 'owner'
  | 'input'
  | 'meta'
> & {
  /** How the definition differs from the accepted one; worked out only for a question that is really asked. */
  readonly drift?: { readonly kind: ApprovalDrift['kind']; difference(): string } | undefined
}

export type Said = {
  readonly by: string
  readonly verdict: Verdict
  readonly reason?: string | undefined
  readonly grant?: Grant | undefined
}

/** The questions that wait for people. Each change is one commit, so that of several at once exactly one counts. */
export type ApprovalStore = {
  /** The question of this call: the one that an equal call of the same principal asked, or a new one; or why there is none. */
  ask(call: ResolvedCall, about: About, most: number): Promise<StoredQuestion | GatewayError>
  find(id: string): Promise<StoredQuestion | undefined>
  /** The question as it stands now; one whose time is up has expired. */
  look(question: StoredQuestion): Promise<StoredQuestion>
  /** What people said to an equal call of the same principal that has not come back for it yet. */
  findAnswered(principalId: string, hash: string): Promise<StoredQuestion | undefined>
  /** Resolves when it no longer waits, rejects when `signal` says that nobody wants to know. */
  settled(question: StoredQuestion, signal: AbortSignal): Promise<StoredQuestion>
  /** How many requests of this instance wait for the answer. */
  waiting(id: string): number
  /** The question as it is then; throws `approval-answered` when somebody was faster, or its time was up. */
  answer(question: StoredQuestion, said: Said): Promise<StoredQuestion>
  /** What it was asked for cannot run any more. */
  withdraw(question: StoredQuestion, why: string): Promise<void>
  /** Whoever asked gets the outcome; when this resolves an equal call is a new one. */
  deliver(question: StoredQuestion): Promise<void>
  close(): void
}

export type ApprovalStoreParts = {
  readonly storage: Pick<Storage, 'questions' | 'asking' | 'changes' | 'calls'>
  /** Milliseconds until an unanswered question expires. */
  readonly expiry: () => number
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly emit: Emitter<EventTable>['emit']
}

/** Each time an equal call was faster, and its question over before it could be joined. */
const mostTries = 5

export function createApprovalStore({ storage, expiry, clock, ids, log, emit }: ApprovalStoreParts): ApprovalStore {
  const { questions, asking, changes } = storage
  /** Nobody asks between counting and asking. */
  const inTurn = createTurns()
  const waiters = createWaiters({ questions, changes, clock, log, emit, expire })

  return {
    async ask(call, about, most) {
      for (let tries = 1; tries <= mostTries; tries++) {
        const live = await questions.findLive(call.principalId, about.hash)
        if (live && !isOver(live)) return live
        if (live) await expire(live)
        else {
          const asked = await inTurn(() => askAnew(call, about, most))
          if (asked) return asked
        }
      }
      throw new GatewayError('internal', `The question for ${call.tool} could not be asked`)
    },
    find: questions.find,
    async look({ id }) {
      const now = await getQuestion(id)
      if (!isOver(now)) return now
      await expire(now)
      return getQuestion(id)
    },
    async findAnswered(principalId, hash) {
      const live = await questions.findLive(principalId, hash)
      return live && live.state !== 'waiting' && !isOver(live) ? live : undefined
    },
    settled: waiters.settled,
    waiting: waiters.waiting,
    async answer(question, said) {
      const answer = toAnswer(said, clock.now())
      const next = nextState(question, answer)
      const answered = await change(question, async () => {
        crashPoint('before the answer is written')
        if (!(await asking.answer(question, { answer, next, grant: said.grant }))) return false
        crashPoint('the answer is written')
        if (said.grant) await changes.announce('grants')
        return true
      })
      if (!answered) throw await tooLate(question)
      return answered
    },
    async withdraw(question, why) {
      await change(question, () => asking.withdraw(question, why))
    },
    deliver: asking.deliver,
    close: waiters.close,
  }

  async function getQuestion(id: string): Promise<StoredQuestion> {
    const question = await questions.find(id)
    if (question) return question
    throw new GatewayError('approval-not-found', `No question has the id ${id}`)
  }

  async function askAnew(
    call: ResolvedCall,
    about: About,
    most: number,
  ): Promise<StoredQuestion | GatewayError | undefined> {
    const { principal, principalId } = call
    const live = await questions.findLive(principalId, about.hash) // somebody whose turn was earlier may have asked the same
    if (live) return isOver(live) ? undefined : live
    if ((await questions.countWaiting(principalId)) >= most) return tooMany(principal, most)
    const question = toQuestion(call, about)
    crashPoint('before the question')
    if (!(await asking.ask(call, question))) return undefined
    crashPoint('the question is asked')
    waiters.asked(question)
    return { ...question, live: true }
  }

  function toQuestion(call: ResolvedCall, { drift, ...about }: About): NewQuestion {
    const shown = call.recorded ?? call
    const askedAt = clock.now()
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
      askedAt: toIso(askedAt),
      expiresAt: toIso(askedAt + expiry()),
      answers: [],
      ...(drift && { drift: { kind: drift.kind, difference: drift.difference() } }),
    }
  }

  async function expire(question: StoredQuestion): Promise<void> {
    await change(question, () => asking.expire(question))
  }

  /** Every change of a question: written, then told. Undefined if somebody else had changed it before. */
  function change(question: StoredQuestion, write: () => Promise<boolean>): Promise<StoredQuestion | undefined> {
    return waiters.whileChanging(question.id, async () => ((await write()) ? told(question) : undefined))
  }

  function isOver({ state, expiresAt }: StoredQuestion): boolean {
    return (state === 'waiting' || state === 'approved') && Date.parse(expiresAt) <= clock.now()
  }

  /** Reads how it stands now and tells everyone: whoever waits for it, whoever listens, the other instances. */
  async function told(question: StoredQuestion): Promise<StoredQuestion> {
    const now = (await questions.find(question.id)) ?? question
    waiters.changed(now)
    const call = ended.has(now.state) ? await storage.calls.find(now.call) : undefined
    if (call) emit('call-ended', { call })
    return now
  }

  async function tooLate(question: StoredQuestion): Promise<GatewayError> {
    const now = (await questions.find(question.id)) ?? question
    if (isOver(now))
      await expire(now).catch((error: unknown) =>
        log.warn({ code: toGatewayError(error).code }, 'a question whose time is up is still open'),
      )
    const { state, answers } = now
    if (state === 'waiting' && !isOver(now))
      return new GatewayError('approval-answered', 'Somebody answered in the same moment: look again, then decide', {
        state,
      })
    const last = answers.at(-1)
    const how = state === 'waiting' || state === 'expired' ? 'Its time was up' : `It was ${words[state]}`
    const by = last && state !== 'expired' && state !== 'lapsed' ? ` by ${last.by}` : ''
    return new GatewayError('approval-answered', `${how}${by}`, { state: state === 'waiting' ? 'expired' : state })
  }
}

const words = {
  approved: 'approved',
  used: 'approved',
  lapsed: 'approved, and not used in time',
  denied: 'denied',
  withdrawn: 'taken back',
} as const

/** Nothing of it runs any more, and nothing has run. */
const ended: ReadonlySet<ApprovalState> = new Set(['denied', 'expired', 'lapsed', 'withdrawn'])

function toAnswer({ by, verdict, reason }: Said, now: number): ApprovalAnswer {
  return { by, verdict, at: toIso(now), ...(reason !== undefined && { reason }) }
}

/** One no is a no; a yes may need a second one. */
function nextState({ answers, approvers }: StoredQuestion, { verdict }: ApprovalAnswer) {
  if (verdict === 'deny') return 'denied'
  return answers.length + 1 >= approvalsNeeded(approvers) ? 'approved' : 'waiting'
}

function tooMany(principal: string, most: number): GatewayError {
  const message = `${principal} has ${most} questions waiting, as many as may be; try again when one is answered`
  return new GatewayError('limit-exceeded', message, { limit: 'pending', most, retryAfter: 30, retryAfterMs: 30_000 })
}
