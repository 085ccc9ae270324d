import { cpuOf } from '../lib/proc.ts'
import { percentile } from '../lib/statistics.ts'
import { nonceLength } from '../servers/payload.ts'
import { checkCall, checkList } from './check.ts'
import { nextId, toCall, toList } from './messages.ts'
import type { Asking, Slice, SliceJob } from './protocol.ts'
import { openSession, type Session } from './session.ts'

const longestMs = 20_000

/** A closed loop: every session sends the next request after each answer. Warm-up and end are not measured. */
export async function runSlice(job: SliceJob): Promise<Slice> {
  const sessions = await openSessions(job)
  try {
    return await drive(job, sessions)
  } finally {
    await Promise.all(sessions.map((session) => session.close()))
  }
}

export async function openSessions(wanted: Pick<SliceJob, 'way' | 'inFlight'>): Promise<Session[]> {
  const opened = await Promise.allSettled(Array.from({ length: wanted.inFlight }, () => openSession(wanted.way)))
  const sessions = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = opened.find((result) => result.status === 'rejected')
  if (!failed) return sessions
  await Promise.all(sessions.map((session) => session.close()))
  throw failed.reason
}

async function drive(job: SliceJob, sessions: readonly Session[]): Promise<Slice> {
  const { warmUpMs, measureMs, pid } = job
  const cpu = () => (pid === undefined ? 0 : cpuOf(pid))
  const latencies: number[] = []
  let measuring = false
  let running = true

  const loops = sessions.map(async (session, index) => {
    for (let turn = index; running; turn++) {
      const question = toQuestion(job.asking, turn)
      const asked = performance.now()
      const answer = await session.exchange(question.id, question.body)
      if (measuring) latencies.push(performance.now() - asked)
      question.check(answer)
    }
  })
  const ended = Promise.all(loops)
  ended.catch(() => {
    running = false
  })
  // A loop ends early only after a failure, so there is nothing to wait for.
  await Promise.race([ended, delay(warmUpMs)])
  const [started, cpuBefore] = [performance.now(), cpu()]
  measuring = true
  await Promise.race([ended, delay(measureMs)])
  // Continue until there is on average one answer per session; a shorter slice would have too few values.
  while (latencies.length < sessions.length && performance.now() - started < longestMs) {
    await Promise.race([ended, delay(20)])
  }
  measuring = false
  const [seconds, cpuUsed] = [(performance.now() - started) / 1000, cpu() - cpuBefore]
  running = false
  await ended
  if (latencies.length === 0) throw new Error(`No call was answered within ${longestMs} ms`)
  const sorted = Float64Array.from(latencies).sort()
  return {
    calls: sorted.length,
    callsPerSecond: sorted.length / seconds,
    p50: percentile(sorted, 50),
    p99: percentile(sorted, 99),
    ...(pid !== undefined && { cpu: cpuUsed / sorted.length }),
  }
}

type Question = { readonly id: number; readonly body: string; check(answer: Buffer): void }

function toQuestion(asking: Asking, turn: number): Question {
  const id = nextId()
  if (asking.kind === 'list') {
    return { id, body: toList(id), check: (answer) => checkList(answer, { id, count: asking.count }) }
  }
  const tool = asking.tools[turn % asking.tools.length] ?? ''
  const given = { nonce: `n${String(id).padStart(nonceLength - 1, '0')}`, bytes: asking.bytes }
  return { id, body: toCall(id, tool, given), check: (answer) => checkCall(answer, { id, ...given }) }
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
