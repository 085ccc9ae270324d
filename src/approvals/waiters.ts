import type { Approval } from '../contract/approval.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import { onAbort } from '../lib/signals.ts'
import type { Storage } from '../storage/storage.ts'
import type { NewQuestion, StoredQuestion } from '../storage/tables/questions.ts'

/** Who waits for which question, here and in the other instances on this database, and when each is over. */
export type Waiters = {
  settled(question: StoredQuestion, signal: AbortSignal): Promise<StoredQuestion>
  /** How many requests of this instance wait for the answer to a question. */
  waiting(id: string): number
  /** This instance asked it, or changed it. */
  asked(question: NewQuestion): void
  /**
   * Runs a task that changes a question and then reports that with `changed`. Until the task has ended, reading the
   * database does not report the question: otherwise its change would be reported twice.
   */
  whileChanging<Result>(id: string, task: () => Promise<Result>): Promise<Result>
  changed(question: StoredQuestion): void
  close(): void
}

type WaitersParts = {
  readonly questions: Storage['questions']
  readonly changes: Storage['changes']
  readonly clock: Clock
  readonly log: Log
  readonly emit: Emitter<EventTable>['emit']
  expire(question: StoredQuestion): Promise<void>
}

type Waiter = (question: StoredQuestion) => void

/** Word of other instances comes at once; should it be lost, this is how long it takes. */
const lookEvery = 10_000
const mostLooked = 500
/** Timers may fire a moment early. */
const roundingMs = 5

export function createWaiters({ questions, changes, clock, log, emit, expire }: WaitersParts): Waiters {
  const waiters = new Map<string, Set<Waiter>>()
  /** Questions that were waiting when last looked at. */
  const known = new Set<string>()
  /** How many tasks of this instance are changing a question at the moment. */
  const changing = new Map<string, number>()
  let looking: Promise<void> | undefined
  let again = false
  let closed = false
  let cancelLook = clock.after(lookEvery, sweep)
  const stop = changes.on('questions', look)

  function sweep(): void {
    cancelLook = clock.after(lookEvery, sweep)
    void look()
  }

  /** One look at a time; a call during one makes another. */
  function look(): Promise<void> {
    again = looking !== undefined
    looking ??= lookOnce()
      .catch((error: unknown) => log.warn({ code: toGatewayError(error).code }, 'questions could not be read'))
      .finally(() => {
        looking = undefined
        if (again && !closed) return look()
      })
    return looking
  }

  async function lookOnce(): Promise<void> {
    if (closed) return
    for (const question of await questions.overdue(clock.now(), mostLooked)) await expire(question)
    const { items } = await questions.list({ limit: mostLooked, state: 'waiting' })
    const waiting = new Set(items.map(({ id }) => id))
    for (const approval of items) {
      if (known.has(approval.id)) continue
      known.add(approval.id)
      emit('question-asked', { approval: toShown(approval), elsewhere: true })
    }
    for (const id of new Set([...known, ...waiters.keys()])) {
      if (waiting.has(id)) continue
      const question = await questions.find(id)
      if (changing.has(id)) continue
      if (!question) known.delete(id)
      else if (question.state !== 'waiting') tell(question, true)
    }
  }

  function tell(question: StoredQuestion, elsewhere: boolean): void {
    const wasKnown = known.has(question.id)
    if (question.state !== 'waiting') {
      known.delete(question.id)
      for (const waiter of waiters.get(question.id) ?? []) waiter(question)
    }
    if (!elsewhere) emit('question-answered', { approval: toShown(question) })
    else if (wasKnown) emit('question-answered', { approval: toShown(question), elsewhere })
  }

  function announce(): void {
    changes
      .announce('questions')
      .catch((error: unknown) => log.warn({ code: toGatewayError(error).code }, 'others were not told of a question'))
  }

  return {
    settled(question, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<StoredQuestion>()
      if (question.state !== 'waiting') return Promise.resolve(question)
      const giveUp = () => reject(new GatewayError('call-cancelled', 'Nobody waits for this answer any more'))
      const unlink = onAbort(signal, giveUp)
      const here = waiters.get(question.id) ?? new Set()
      waiters.set(question.id, here.add(resolve))
      const left = Math.max(0, Date.parse(question.expiresAt) - clock.now())
      const cancelExpiry = clock.after(left + roundingMs, () => {
        expire(question).catch((error: unknown) => log.warn({ code: toGatewayError(error).code }, 'not expired yet'))
      })
      // It may have been answered between being read and being waited for.
      questions.find(question.id).then((now) => now && now.state !== 'waiting' && resolve(now), reject)
      return promise.finally(() => {
        cancelExpiry()
        unlink()
        here.delete(resolve)
        if (here.size === 0) waiters.delete(question.id)
      })
    },
    waiting: (id) => waiters.get(id)?.size ?? 0,
    asked(question) {
      known.add(question.id)
      emit('question-asked', { approval: toShown(question) })
      announce()
    },
    async whileChanging(id, task) {
      changing.set(id, (changing.get(id) ?? 0) + 1)
      try {
        return await task()
      } finally {
        const left = (changing.get(id) ?? 1) - 1
        if (left === 0) changing.delete(id)
        else changing.set(id, left)
      }
    },
    changed(question) {
      tell(question, false)
      announce()
    },
    close() {
      closed = true
      cancelLook()
      stop()
    },
  }
}

/** What a grant would be bound to is nobody's business. */
function toShown(question: Approval & Partial<StoredQuestion>): Approval {
  const { definition: _definition, argumentsHash: _hash, live: _live, drift: _drift, ...shown } = question
  return shown
}
