import { errorTable, type GatewayError, toGatewayError } from '../../../contract/errors.ts'
import type { Status } from '../../../contract/status.ts'
import { countOf } from '../../../shared/words.ts'
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

/** False for the reduced answer that an agent's token gets; it contains no servers. */
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
    `The changed configuration is not used: ${rejected}`,
    `sallyport config check ${config.file}`,
  )
}

/** Files beside the configuration whose newest content waits or cannot be used. */
export function checkNotices(running: Running): Finding[] {
  if (running.kind !== 'answers') return []
  return running.status.config.notices.map((notice) => warning('files', notice, 'Look at the file that is named'))
}

function toStorageProblem({ problem }: Status['storage']): string {
  return `The audit cannot be written${problem ? `: ${problem.message}` : ''}`
}

function toStorageHint({ kind, problem }: Status['storage']): string {
  if (problem?.code === 'clock-wrong') return errorTable['clock-wrong'].hint
  if (kind === 'sqlite') return 'Check disk space and the data folder'
  return 'Check that the PostgreSQL server of SALLYPORT_DATABASE_URL runs and has disk space'
}

/** Contents of repositories that nobody has accepted are not in effect, which is easy to overlook. */
export function checkRepositories(running: Running): Finding[] {
  if (running.kind !== 'answers') return []
  return running.status.repositories.map(({ project, message }) =>
    warning(`project ${project}`, message, `sallyport projects accept ${project}`),
  )
}

/** Entries after the last stored anchor could be removed unnoticed, so a failing anchor target is a warning. */
export function checkAnchors(running: Running): Finding[] {
  if (running.kind !== 'answers') return []
  return running.status.anchors
    .filter(({ error }) => error !== undefined)
    .map(({ target, waiting, error }) => {
      const message = `Anchors of the audit cannot be written to ${target}: ${error} (${waiting} waiting)`
      return warning('anchors', message, 'Repair the target, or change `audit.anchors` in the configuration')
    })
}

/** Retention removes entries permanently, so a clock that jumped must be confirmed first. */
export function checkRetention(running: Running): Finding[] {
  const retention = running.kind === 'answers' ? running.status.retention : undefined
  if (!retention) return []
  if (retention.held === undefined) return [ok('retention', `Entries are kept for ${retention.days} days`)]
  const fix = 'Correct the clocks; if they are correct: sallyport audit confirm-clock'
  return [warning('retention', `Retention is on hold: ${retention.held}`, fix)]
}

/** The states in the running gateway of all servers that no other check has explained. */
export function checkStates(servers: Status['servers'], explained: ReadonlySet<string>): Finding[] {
  return servers.flatMap((server): Finding[] => {
    const id = toId(server)
    const check = toCheck(id)
    if (server.state === 'disabled' || explained.has(check)) return []
    const titled = server.title === undefined ? '' : `; title: ${server.title}`
    if (server.state === 'connected') return [ok(check, `connected, ${countOf(server.tools, 'tool')}${titled}`)]
    // A failing server is `connecting` during each retry, so only a server without an error counts as new.
    const isNew = server.state === 'connecting' && !server.error
    if (isNew) return [warning(check, `${server.name} is connecting`, `sallyport servers get ${server.name}`)]
    const why = server.error ? `: ${server.error}` : ''
    const message = [`${server.name} is not connected${why}${titled}`, ...toOutputLines(server.output)].join('\n')
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

/** The id of a connection in the global scope is its name. */
function toId({ name, scope }: { name: string; scope: string }): string {
  return scope === 'global' ? name : `${name}@${scope}`
}
