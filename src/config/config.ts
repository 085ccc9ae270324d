import { resolve as toAbsolute } from 'node:path'
import type { Config } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import { toScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import { listChanged } from './changes.ts'
import { type ConfigEdit, editText } from './edit.ts'
import { type ConfigProblem, formatProblem, toConfigError } from './problems.ts'
import { parseConfig, readText } from './read.ts'
import { type ConnectionSpec, connections, type EffectiveConfig, effective, scopesOf, statementsOf } from './scopes.ts'
import { createSharedSource, type SharedConfig } from './shared-source.ts'
import { type ConfigText, createFileSource } from './source.ts'
import { createEnvironmentLookup, type Environment, resolveDefinition, toMissingError } from './templates.ts'
import { watchFile } from './watch.ts'

export type { ConfigEdit } from './edit.ts'
export { type ConfigPlaces, findConfigFile, starterConfig } from './find.ts'
export { type ConfigProblem, formatProblem, toConfigError } from './problems.ts'
export { parseConfig, type Reading, readConfig, readRuleSet } from './read.ts'
export { configSchema } from './schema.ts'
export {
  type ConnectionSpec,
  connections,
  type EffectiveConfig,
  type EffectiveServer,
  effective,
  projectOf,
  scopesOf,
} from './scopes.ts'
export { createEnvironmentLookup, type Environment, type Lookup, resolveDefinition } from './templates.ts'

export type ConfigStore = {
  readonly file: string
  current(): Config
  /** Problems of the file as it is on disk now, if the last reading was rejected. */
  rejected(): readonly ConfigProblem[]
  effective(principal: Principal): EffectiveConfig
  connections(): readonly ConnectionSpec[]
  /** The definition with its templates filled in; throws `variable-missing`. */
  resolve(definition: ServerDefinition): ServerDefinition
  /** Validates the whole, saves with comments and order kept, applies, and says so with `config-changed`. */
  change(edit: ConfigEdit): Promise<void>
  /** Reads the file now instead of waiting for the watcher. */
  reload(): Promise<void>
  /** From now on the text in force lives in the database, and all gateways on it have the same. */
  share(shared: SharedConfig): Promise<void>
  close(): Promise<void>
}

export type ConfigParts = {
  readonly file: string
  readonly clock: Clock
  readonly log: Log
  readonly environment: Environment
  readonly emit: Emitter<EventTable>['emit']
}

type InForce = ConfigText & { readonly config: Config; readonly value: unknown; readonly views: Views }

/** How long a text that looks unfinished may still grow before it is taken at its word. */
const patience = 1000

/** The live configuration of one file. A mistake refuses the start; later it changes nothing. */
export async function createConfig(parts: ConfigParts): Promise<ConfigStore> {
  const { clock, log, environment, emit } = parts
  const file = toAbsolute(parts.file)
  let inForce = await readFirst(file)
  let rejected: readonly ConfigProblem[] = []
  let cancelWait = (): void => undefined
  const turns = createTurns()
  let source = createFileSource(file)
  let stopSharing = (): void => undefined

  /** Whoever shares it hears of it after the turn, because this gateway hears of it too. */
  async function inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = await turns(task)
    await source.settle()
    return result
  }

  function accept(next: ConfigText, { config, value }: { config: Config; value: unknown }): void {
    const changed = listChanged(inForce.config, config)
    const healed = rejected.length > 0
    inForce = { ...next, config, value, views: createViews(config) }
    rejected = []
    if (changed.length === 0 && !healed) return
    emit('config-changed', { changed, ...(next.elsewhere && { elsewhere: true }) })
  }

  /** Somebody took a mistake back: nothing differs, but what was reported no longer holds. */
  function heal(): void {
    if (rejected.length === 0) return
    rejected = []
    emit('config-changed', { changed: [] })
  }

  function reject(problems: readonly ConfigProblem[]): void {
    const lines = problems.map(formatProblem)
    const known = rejected.map(formatProblem)
    rejected = problems
    if (lines.join('\n') !== known.join('\n')) emit('config-rejected', { file, problems: lines })
  }

  async function load(): Promise<void> {
    cancelWait()
    const seen = await source.read(inForce)
    if ('problems' in seen) return reject(seen.problems)
    if (seen.text === inForce.text) return heal()
    const reading = parseConfig(seen.file, seen.text)
    if (reading.ok) accept(seen, reading)
    else reject(reading.problems)
  }

  async function notice(): Promise<void> {
    if (!(await source.isUnfinished(inForce))) return load()
    cancelWait()
    cancelWait = clock.after(patience, () => later(load))
  }

  async function change(edit: ConfigEdit): Promise<void> {
    for (let attempt = 0; attempt < 5; attempt++) {
      await load() // somebody's edit of the file comes first
      if (rejected.length > 0) throw toConfigError(rejected)
      const text = editText(inForce, edit)
      if (text === inForce.text) return
      const next = { file: inForce.file, text }
      const reading = parseConfig(next.file, text)
      if (!reading.ok) throw toConfigError(reading.problems)
      if ((await source.save(next, inForce)) === 'saved') return accept(next, reading)
    }
    throw new GatewayError('config-conflict', `${file} keeps changing; nothing was saved`, { file })
  }

  function later(task: () => Promise<void>): void {
    inTurn(task).catch((error) => log.error({ file, error: String(error) }, 'The configuration could not be reloaded'))
  }

  const watcher = await watchFile({ file, clock, log, onQuiet: () => later(notice) })
  await inTurn(load) // whatever was written before the watch began
  return {
    file,
    current: () => inForce.config,
    rejected: () => rejected,
    effective: (principal) => inForce.views.effective(principal),
    connections: () => inForce.views.connections(),
    resolve: (definition) => resolveWith(environment, inForce.config.environment, definition),
    change: (edit) => inTurn(() => change(edit)),
    reload: () => inTurn(load),
    async share(shared) {
      source = createSharedSource(file, inForce.text, shared)
      stopSharing = shared.onChange(() => inTurn(load))
      await inTurn(load)
      if (rejected.length > 0) throw toConfigError(rejected)
    },
    async close() {
      stopSharing()
      await watcher.close()
      cancelWait()
      await inTurn(async () => cancelWait())
    },
  }
}

async function readFirst(file: string): Promise<InForce> {
  const text = await readText(file)
  if (typeof text !== 'string') throw toConfigError([text])
  const reading = parseConfig(file, text)
  if (!reading.ok) throw toConfigError(reading.problems)
  return { file, text, config: reading.config, value: reading.value, views: createViews(reading.config) }
}

/** One after the other, so that no change is worked out from what another is about to replace. */
function createTurns(): <Result>(task: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const turn = last.then(task)
    last = turn.catch(() => undefined)
    return turn
  }
}

type Views = { effective(principal: Principal): EffectiveConfig; connections(): readonly ConnectionSpec[] }

/** What follows from a configuration, worked out when it is first asked for. */
function createViews(config: Config): Views {
  const known = new Map<string, EffectiveConfig>()
  let specs: readonly ConnectionSpec[] | undefined
  return {
    effective(principal) {
      // Agents without settings of their own share one view, so that strangers' names do not fill the memory.
      const scopes = scopesOf(config, principal).filter((scope) => isStated(config, scope))
      const key = scopes.map(toScopeKey).join(' ')
      const view = known.get(key) ?? effective(config, scopes)
      known.set(key, view)
      return view
    },
    connections() {
      specs ??= connections(config)
      return specs
    },
  }
}

function isStated(config: Config, scope: Parameters<typeof statementsOf>[1]): boolean {
  const { servers, rules } = statementsOf(config, scope)
  return Object.keys(servers).length > 0 || rules.length > 0
}

function resolveWith(
  environment: Environment,
  listed: readonly string[],
  definition: ServerDefinition,
): ServerDefinition {
  const resolved = resolveDefinition(definition, createEnvironmentLookup(environment, listed))
  if (resolved.missing.length > 0) throw toMissingError(resolved.missing, environment, listed)
  return resolved.definition
}
