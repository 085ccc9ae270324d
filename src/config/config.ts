import { resolve as toAbsolute } from 'node:path'
import type { Config } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import type { Scope, ScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import { createTurns } from '../lib/turns.ts'
import { listChanged } from './changes.ts'
import { type ConfigEdit, editText } from './edit.ts'
import { type Origins, originOf } from './merge.ts'
import { type ConfigProblem, formatProblem, toConfigError } from './problems.ts'
import { parseConfig, readText } from './read.ts'
import {
  beneathSession,
  type ConnectionSpec,
  chainOf,
  connections,
  type EffectiveConfig,
  effective,
  isStated,
  isTrusted,
  listScopes,
  onlyTightens,
  ownerOf,
  type Roster,
  type SessionOrigin,
  type Settings,
  type Statements,
  scopesOf,
  statementsOf,
  toChainKey,
  toRosterPrint,
  toSettings,
  usedBy,
} from './scopes.ts'
import { createSharedSource, type SharedConfig } from './shared-source.ts'
import { type ConfigText, createFileSource } from './source.ts'
import {
  createEnvironmentLookup,
  type Environment,
  isOwnVariable,
  resolveDefinition,
  toMissingError,
} from './templates.ts'
import { watchFile } from './watch.ts'

export { type ConfigEdit, withRisks } from './edit.ts'
export { type ConfigPlaces, findConfigFile, listConfigPlaces, schemaFile, starterConfig } from './find.ts'
export {
  type Judgement,
  mayChangeServer,
  type Place,
  type ServerAct,
  seesDefinition,
} from './members.ts'
export {
  type EffectiveServer,
  isComplete,
  type Origins,
  originOf,
  originsOf,
  type PinnedEntry,
  withTrust,
} from './merge.ts'
export { type ConfigProblem, formatProblem, toConfigError } from './problems.ts'
export { parseConfig, type Reading, readConfig, readRuleSet } from './read.ts'
export { planConfigRemoval } from './removal.ts'
export { saveText } from './save.ts'
export { configSchema } from './schema.ts'
export {
  type ConnectionSpec,
  connections,
  type EffectiveConfig,
  effective,
  isTrusted,
  projectOf,
  type Roster,
  type SessionOrigin,
  type SessionSettings,
  scopesOf,
  toSettings,
} from './scopes.ts'
export { createEnvironmentLookup, type Environment, type Lookup, resolveDefinition } from './templates.ts'
export { toShownConfig } from './webhooks.ts'

export type ConfigStore = {
  readonly file: string
  current(): Config
  /** Problems of the file as it is on disk now, if the last reading was rejected. */
  rejected(): readonly ConfigProblem[]
  effective(principal: Principal): EffectiveConfig
  /** What holds in a scope, with what it inherits. */
  effectiveIn(scope: Scope): EffectiveConfig
  /** What a scope states by itself. */
  statedIn(scope: Scope): Statements
  /** What the scope inherits: everything that holds there but what it states itself. */
  inheritedIn(scope: Scope): EffectiveConfig
  /** What a session would inherit that stands on these. */
  beneath(session: SessionOrigin): EffectiveConfig
  /** The scopes that state anything. */
  scopes(): readonly Scope[]
  /** The scopes that somebody works under. */
  usedBy(principal: Principal): ReadonlySet<ScopeKey>
  /** Whether only administrators write in a scope. */
  trusts(scope: ScopeKey): boolean
  /** Whether what the rules of a scope allow loosens nothing. */
  onlyTightens(scope: ScopeKey): boolean
  /** Whose session or agent a scope is; undefined where nobody owns it. */
  ownerOf(scope: Scope): string | undefined
  connections(): readonly ConnectionSpec[]
  /** The definition with its templates filled in, each with what the scope may use that wrote it; throws `variable-missing`. */
  resolve(definition: ServerDefinition, origins: Origins, beside?: Beside): ServerDefinition
  /** The agents or the sessions are others than before, or state something else. */
  restate(): void
  /**
   * Validates the whole, saves with comments and order kept, applies, and says so with `config-changed`.
   * `judge` throws if it may not be; it is asked of the configuration that the change is made to, not of one before.
   */
  change(edit: ConfigEdit, judge?: () => void): Promise<void>
  /** Reads the file now instead of waiting for the watcher. */
  reload(): Promise<void>
  /** From now on the text in force lives in the database, and all gateways on it have the same. */
  share(shared: SharedConfig): Promise<void>
  close(): Promise<void>
}

/** Where else values come from, and who wants to know what was handed out. */
export type Beside = {
  /** Asked before the environment; `author` is the scope that wrote the text under this dotted key. */
  find(name: string, author: ScopeKey, key: string): string | undefined
  onVariable(name: string, value: string): void
}

export type ConfigParts = {
  readonly file: string
  readonly clock: Clock
  readonly log: Log
  readonly environment: Environment
  readonly emit: Emitter<EventTable>['emit']
  /** Who there is beside those that the file names. */
  readonly roster?: () => Roster
}

type InForce = ConfigText & { readonly config: Config; readonly value: unknown; readonly views: Views }

const nobody: Roster = { agents: [], sessions: [] }

/** How long a text that looks unfinished may still grow before it is taken at its word. */
const patience = 1000

/** The live configuration of one file. A mistake refuses the start; later it changes nothing. */
export async function createConfig(parts: ConfigParts): Promise<ConfigStore> {
  const { clock, log, environment, emit, roster = () => nobody } = parts
  const file = toAbsolute(parts.file)
  let inForce = await readFirst(file, roster)
  let rejected: readonly ConfigProblem[] = []
  let cancelWait = (): void => undefined
  // One after the other, so that no change is worked out from what another is about to replace.
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
    inForce = { ...next, config, value, views: createViews(toSettings(config, roster())) }
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

  async function change(edit: ConfigEdit, judge?: () => void): Promise<void> {
    for (let attempt = 0; attempt < 5; attempt++) {
      await load() // somebody's edit of the file comes first
      if (rejected.length > 0) throw toConfigError(rejected)
      judge?.()
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
    effectiveIn: (scope) => inForce.views.along(chainOf(inForce.views.settings, scope)),
    inheritedIn: (scope) => inForce.views.along(chainOf(inForce.views.settings, scope).slice(0, -1)),
    beneath: (session) => inForce.views.along(beneathSession(inForce.views.settings, session)),
    statedIn: (scope) => statementsOf(inForce.views.settings, scope),
    scopes: () => listScopes(inForce.views.settings),
    usedBy: (principal) => usedBy(inForce.views.settings, principal),
    trusts: (scope) => isTrusted(inForce.views.settings, scope),
    onlyTightens: (scope) => onlyTightens(inForce.views.settings, scope),
    ownerOf: (scope) => ownerOf(inForce.views.settings, scope),
    connections: () => inForce.views.connections(),
    resolve: (definition, origins, beside) =>
      resolveWith(environment, inForce.views.settings, { definition, origins, beside }),
    restate() {
      const before = toRosterPrint(inForce.views.settings)
      const settings = toSettings(inForce.config, roster())
      inForce = { ...inForce, views: createViews(settings) }
      if (toRosterPrint(settings) !== before) emit('config-changed', { changed: [] })
    },
    change: (edit, judge) => inTurn(() => change(edit, judge)),
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

async function readFirst(file: string, roster: () => Roster): Promise<InForce> {
  const text = await readText(file)
  if (typeof text !== 'string') throw toConfigError([text])
  const reading = parseConfig(file, text)
  if (!reading.ok) throw toConfigError(reading.problems)
  const { config, value } = reading
  return { file, text, config, value, views: createViews(toSettings(config, roster())) }
}

type Views = {
  readonly settings: Settings
  effective(principal: Principal): EffectiveConfig
  along(scopes: readonly Scope[]): EffectiveConfig
  connections(): readonly ConnectionSpec[]
}

/** What follows from a configuration, worked out when it is first asked for. */
function createViews(settings: Settings): Views {
  const known = new Map<string, EffectiveConfig>()
  /** A token's principal is the same object from call to call. */
  const byPrincipal = new WeakMap<Principal, EffectiveConfig>()
  let specs: readonly ConnectionSpec[] | undefined

  function along(wanted: readonly Scope[]): EffectiveConfig {
    // Agents without settings of their own share one view, so that strangers' names do not fill the memory.
    const scopes = wanted.filter((scope) => isStated(settings, scope))
    const key = toChainKey(scopes)
    const view = known.get(key) ?? effective(settings, scopes)
    known.set(key, view)
    return view
  }

  return {
    settings,
    effective(principal) {
      const seen = byPrincipal.get(principal)
      if (seen !== undefined) return seen
      const view = along(scopesOf(settings, principal))
      byPrincipal.set(principal, view)
      return view
    },
    along,
    connections() {
      specs ??= connections(settings)
      return specs
    },
  }
}

type Wanted = { definition: ServerDefinition; origins: Origins; beside: Beside | undefined }

function resolveWith(environment: Environment, settings: Settings, wanted: Wanted): ServerDefinition {
  const { definition, origins, beside } = wanted
  const variables = createEnvironmentLookup(environment, settings.environment)
  const withheld = new Set<string>()
  const resolved = resolveDefinition(definition, (name, key) => {
    const origin = originOf(origins, key)
    const found = origin === undefined || isOwnVariable(name) ? undefined : beside?.find(name, origin, key)
    if (found !== undefined) return found
    // Whoever may choose the address would read any variable by naming it in a header.
    if (origin === undefined || !isTrusted(settings, origin)) {
      withheld.add(name)
      return undefined
    }
    const value = variables(name)
    if (value !== undefined) beside?.onVariable(name, value)
    return value
  })
  if (resolved.missing.length > 0) throw toMissingError(resolved.missing, environment, settings.environment, withheld)
  return resolved.definition
}
