import type { Server } from '../contract/server.ts'
import { toVisible } from '../text/visible.ts'
import type { Fields, ServeLog } from './serve-log.ts'
import { toTime } from './serve-log.ts'
import type { Terminal } from './terminal.ts'
import { describeFailure } from './words.ts'

type StateParts = {
  readonly colours: Terminal['talkColours']
  readonly log: ServeLog
  /** Milliseconds since 1970. */
  now(): number
}

/** What was told of one server. */
type Told = {
  line: string
  progressAt: number
  failures: number
  /** When the server began to fail, and when that was told last. */
  failingSince: number
  failureToldAt: number
  lastFailure: string
}

/** A start that takes long counts its seconds; one line in ten of them is enough. */
const progressEvery = 10_000
/** A server that keeps failing is told at once and then in one line per ten minutes. */
const summaryEvery = 600_000

/** Returns a function that tells of a server's state: each change once, repeated failures in summaries. */
export function createStateTeller({ colours, log, now }: StateParts): (server: Server) => void {
  const known = new Map<string, Told>()

  return function tell(server): void {
    const told = known.get(server.id) ?? {
      line: '',
      progressAt: Number.NEGATIVE_INFINITY,
      failures: 0,
      failingSince: 0,
      failureToldAt: 0,
      lastFailure: '',
    }
    known.set(server.id, told)
    if (server.state === 'connecting') return tellProgress(server, told)
    if (server.state === 'connected') return tellConnected(server, told)
    if (server.state === 'disabled') return tellOnce(server, told, colours.dim(`disabled ${nameOf(server)}`))
    tellFailure(server, told)
  }

  function tellProgress(server: Server, told: Told): void {
    if (server.progress === undefined || told.failures > 0 || now() - told.progressAt < progressEvery) return
    told.progressAt = now()
    tellOnce(server, told, colours.dim(`${nameOf(server)}: ${toVisible(server.progress)}`))
  }

  function tellConnected(server: Server, told: Told): void {
    const after = told.failures > 0 ? ` after ${count(told.failures, 'failed attempt')}` : ''
    told.failures = 0
    tellOnce(server, told, `${colours.green('connected')} ${nameOf(server)}, ${count(server.tools, 'tool')}${after}`)
  }

  function tellFailure(server: Server, told: Told): void {
    const failure = `${server.state} ${server.error?.at ?? server.since}`
    if (failure === told.lastFailure) return
    told.lastFailure = failure
    told.failures++
    const at = now()
    const isGivenUp = server.nextAttemptAt === undefined
    if (told.failures > 1 && !isGivenUp) {
      if (at - told.failureToldAt < summaryEvery) return
      told.failureToldAt = at
      const since = `${count(told.failures, 'failed attempt')} since ${toTime(new Date(told.failingSince))}`
      const last = server.error ? `; last: ${toVisible(server.error.message)}` : ''
      return tellOnce(server, told, `${colours.red(server.state)} ${nameOf(server)}, ${since}${last}`, told)
    }
    if (told.failures === 1) told.failingSince = at
    told.failureToldAt = at
    const why = server.error ? `, ${describeFailure(server.error)}` : ''
    tellOnce(server, told, `${colours.red(server.state)} ${nameOf(server)}${why}`, told)
  }

  function tellOnce(server: Server, told: Told, line: string, failing?: Pick<Told, 'failures'>): void {
    if (told.line === line) return
    told.line = line
    log.event(line, `server ${server.state}`, toFields(server, failing), failing ? 'warn' : 'info')
  }
}

function toFields(server: Server, failing: Pick<Told, 'failures'> | undefined): Fields {
  const { name, scope, state, tools, error, nextAttemptAt, progress } = server
  return {
    server: name,
    scope,
    state,
    ...(state === 'connected' && { tools }),
    ...(progress !== undefined && { progress }),
    ...(failing && { failures: failing.failures }),
    // Without `output`: a log gets no raw text of a server.
    ...(error && { code: error.code, class: error.class, error: error.message }),
    ...(nextAttemptAt !== undefined && { nextAttemptAt }),
  }
}

function nameOf({ name, scope }: Server): string {
  return toVisible(scope === 'global' ? name : `${name} (${scope})`)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
