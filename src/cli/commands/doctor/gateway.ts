import { errorTable, type GatewayError, toGatewayError } from '../../../contract/errors.ts'
import type { Status } from '../../../contract/status.ts'
import { toOutputLines } from '../../terminal/words.ts'
import { type Finding, note, ok, problem, warning } from './finding.ts'
import { toCheck } from './servers.ts'

export type Running =
  | { readonly kind: 'answers'; readonly status: Status }
  | { readonly kind: 'none' }
  | { readonly kind: 'silent'; readonly error: GatewayError }

export async function askGateway(expected: boolean, ask: () => Promise<unknown>): Promise<Running> {
  if (!expected) return { kind: 'none' }
  try {
    const answer = await ask()
    return isWhole(answer) ? { kind: 'answers', status: answer } : { kind: 'none' }
  } catch (error) {
    return { kind: 'silent', error: toGatewayError(error) }
  }
}

/** An agent's token gets a reduced answer, which tells nothing about servers. */
function isWhole(answer: unknown): answer is Status {
  return typeof answer === 'object' && answer !== null && 'servers' in answer
}

export function checkGateway(running: Running): Finding {
  if (running.kind === 'none') return note('gateway', 'No gateway is running', 'sallyport serve')
  if (running.kind === 'silent') return problem('gateway', running.error.message, running.error.entry.hint)
  const { url, version, config, storage } = running.status
  if (!storage.healthy) return problem('gateway', toStorageProblem(storage), toStorageHint(storage))
  const [rejected] = config.problems
  if (rejected === undefined) return ok('gateway', `Sallyport ${version} answers at ${url} (${storage.kind})`)
  return problem(
    'gateway',
    `The changed configuration is not in force: ${rejected}`,
    `sallyport config check ${config.file}`,
  )
}

function toStorageProblem({ problem }: Status['storage']): string {
  return `The record cannot be written${problem ? `: ${problem.message}` : ''}`
}

function toStorageHint({ kind, problem }: Status['storage']): string {
  if (problem?.code === 'clock-wrong') return errorTable['clock-wrong'].hint
  if (kind === 'sqlite') return 'Check disk space and the data folder'
  return 'Check that the PostgreSQL of SALLYPORT_DATABASE_URL runs and has room'
}

/** The record can be proven only as far as its anchors reach. */
export function checkAnchors(running: Running): Finding[] {
  if (running.kind !== 'answers') return []
  return running.status.anchors
    .filter(({ error }) => error !== undefined)
    .map(({ target, waiting, error }) => {
      const message = `Anchors of the record do not reach ${target}: ${error} (${waiting} wait)`
      return warning('anchors', message, 'Mend the place, or change `audit.anchors` in the configuration')
    })
}

/** Removed entries are gone for good, so a clock that jumped has to be confirmed first. */
export function checkRetention(running: Running): Finding[] {
  const retention = running.kind === 'answers' ? running.status.retention : undefined
  if (!retention) return []
  if (retention.held === undefined) return [ok('retention', `Entries are kept for ${retention.days} days`)]
  const fix = 'Set the clocks right; if they are right: sallyport audit confirm-clock'
  return [warning('retention', `Retention is on hold: ${retention.held}`, fix)]
}

/** States of the running gateway, for servers that have no better explanation yet. */
export function checkStates(servers: Status['servers'], explained: ReadonlySet<string>): Finding[] {
  return servers.flatMap((server): Finding[] => {
    const id = toId(server)
    const check = toCheck(id)
    if (server.state === 'disabled' || explained.has(check)) return []
    if (server.state === 'connected') return [ok(check, `connected, ${server.tools} tools`)]
    // A server that keeps failing is being tried again now and then, and is no better in these moments.
    const isNew = server.state === 'connecting' && !server.error
    if (isNew) return [warning(check, `${server.name} is connecting`, `sallyport servers get ${server.name}`)]
    const why = server.error ? `: ${server.error}` : ''
    const message = [`${server.name} is not connected${why}`, ...toOutputLines(server.output)].join('\n')
    return [
      problem(
        check,
        message,
        `sallyport servers validate ${server.name}; then: sallyport servers reconnect ${server.name}`,
      ),
    ]
  })
}

export function listConnected(running: Running): Set<string> {
  if (running.kind !== 'answers') return new Set()
  return new Set(running.status.servers.filter((server) => server.state === 'connected').map(toId))
}

/** Connections of the global scope go by the name alone. */
function toId({ name, scope }: { name: string; scope: string }): string {
  return scope === 'global' ? name : `${name}@${scope}`
}
