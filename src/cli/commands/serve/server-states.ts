import type { Server } from '../../../contract/server.ts'
import { toClockTime } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { describeFailure } from '../../terminal/words.ts'
import type { Fields, ServeLog } from './serve-log.ts'

type StateParts = {
  readonly colours: Terminal['talkColours']
  readonly log: ServeLog
  /** Milliseconds since 1970. */
  now(): number
}

/** What was reported about one server. */
type Reported = {
  line: string
  progressAt: number
  failures: number
  /** Time of the first failure, and of the last report. */
  failingSince: number
  failureReportedAt: number
  lastFailure: string
}

/** Milliseconds between two lines about a slow start. */
const progressEvery = 10_000
/** Milliseconds between two lines about a server that keeps failing; the first failure is reported at once. */
const summaryEvery = 600_000

/** Returns a function that reports the state of a server: each change once, repeated failures as summaries. */
export function createStateReporter({ colours, log, now }: StateParts): (server: Server) => void {
  const known = new Map<string, Reported>()

  return function report(server): void {
    const reported = known.get(server.id) ?? {
      line: '',
      progressAt: Number.NEGATIVE_INFINITY,
      failures: 0,
      failingSince: 0,
      failureReportedAt: 0,
      lastFailure: '',
    }
    known.set(server.id, reported)
    if (server.state === 'connecting') return reportProgress(server, reported)
    if (server.state === 'connected') return reportConnected(server, reported)
    if (server.state === 'disabled') return reportOnce(server, reported, colours.dim(`disabled ${nameOf(server)}`))
    reportFailure(server, reported)
  }

  function reportProgress(server: Server, reported: Reported): void {
    if (server.progress === undefined || reported.failures > 0 || now() - reported.progressAt < progressEvery) return
    reported.progressAt = now()
    reportOnce(server, reported, colours.dim(`${nameOf(server)}: ${toVisible(server.progress)}`))
  }

  function reportConnected(server: Server, reported: Reported): void {
    const after = reported.failures > 0 ? ` after ${countOf(reported.failures, 'failed attempt')}` : ''
    reported.failures = 0
    reportOnce(
      server,
      reported,
      `${colours.green('connected')} ${nameOf(server)}, ${countOf(server.tools, 'tool')}${after}`,
    )
  }

  function reportFailure(server: Server, reported: Reported): void {
    const failure = `${server.state} ${server.error?.at ?? server.since}`
    if (failure === reported.lastFailure) return
    reported.lastFailure = failure
    reported.failures++
    const at = now()
    const isGivenUp = server.nextAttemptAt === undefined
    if (reported.failures > 1 && !isGivenUp) {
      if (at - reported.failureReportedAt < summaryEvery) return
      reported.failureReportedAt = at
      const since = `${countOf(reported.failures, 'failed attempt')} since ${toClockTime(new Date(reported.failingSince))}`
      const last = server.error ? `; last: ${toVisible(server.error.message)}` : ''
      return reportOnce(server, reported, `${colours.red(server.state)} ${nameOf(server)}, ${since}${last}`, reported)
    }
    if (reported.failures === 1) reported.failingSince = at
    reported.failureReportedAt = at
    const why = server.error ? `, ${describeFailure(server.error)}` : ''
    reportOnce(server, reported, `${colours.red(server.state)} ${nameOf(server)}${why}`, reported)
  }

  function reportOnce(server: Server, reported: Reported, line: string, failing?: Pick<Reported, 'failures'>): void {
    if (reported.line === line) return
    reported.line = line
    log.event(line, `server ${server.state}`, toFields(server, failing), failing ? 'warn' : 'info')
  }
}

function toFields(server: Server, failing: Pick<Reported, 'failures'> | undefined): Fields {
  const { name, scope, state, tools, error, nextAttemptAt, progress } = server
  return {
    server: name,
    scope,
    state,
    ...(state === 'connected' && { tools }),
    ...(progress !== undefined && { progress }),
    ...(failing && { failures: failing.failures }),
    // Without `output`: raw text of a server must not be logged.
    ...(error && { code: error.code, class: error.class, error: error.message }),
    ...(nextAttemptAt !== undefined && { nextAttemptAt }),
  }
}

function nameOf({ name, scope }: Server): string {
  return toVisible(scope === 'global' ? name : `${name} (${scope})`)
}
