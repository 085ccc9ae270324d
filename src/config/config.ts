import { resolve as toAbsolute } from 'node:path'
import type { Config } from '../contract/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import { Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Scope, ScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import { crashPoint } from '../lib/crash-point.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import { createTurns } from '../lib/turns.ts'
import type { Change } from '../storage/tables/audit.ts'
import type { ChangeOutcome, ConfigChangeStore, ConfigInForce } from '../storage/tables/config-changes.ts'
import { listChanged } from './changes.ts'
import { describeEdit } from './describe.ts'
import { type ConfigEdit, editText } from './edit.ts'
import { listUnlike, type Seal, toMarks } from './marks.ts'
import type { Origins } from './merge.ts'
import { type ConfigProblem, formatProblem, toConfigError } from './problems.ts'
import { parseConfig } from './read.ts'
import {
  beneathSession,
  type ConnectionSpec,
  chainOf,
  type EffectiveConfig,
  isTrusted,
  listScopes,
  onlyTightens,
  ownerOf,
  type Roster,
  type SessionOrigin,
  type Statements,
  statementsOf,
  toRosterPrint,
  toSettings,
  usedBy,
} from './scopes.ts'
import { createSharedSource, type SharedConfig } from './shared-source.ts'
import { type AuthoredText, type ConfigSource, type ConfigText, createFileSource, fileAuthor } from './source.ts'
import type { Environment } from './templates.ts'
import { type Beside, createViews, resolveWith, type Views } from './views.ts'
import { watchFile } from './watch.ts'

export { createChangeLimit } from './change-limit.ts'
export { type ConfigEdit, withRisks } from './edit.ts'
export { type ConfigPlaces, findConfigFile, listConfigPlaces, schemaFile, starterConfig } from './find.ts'
export { createSeal, type Seal } from './marks.ts'
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
export { demandValid, parseConfig, type Reading, readConfig, readRuleSet } from './read.ts'
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
export { type SharedConfig, toSharedConfig } from './shared-source.ts'
export { createEnvironmentLookup, type Environment, type Lookup, resolveDefinition } from './templates.ts'
export type { Beside } from './views.ts'
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
  /** A principal by kind and name, such as `agent:reviewer`, with the owner if one is known. */
  describePrincipal(key: string): Principal
  connections(): readonly ConnectionSpec[]
  /** The definition with its templates filled in, each with what the scope may use that wrote it; throws `variable-missing`. */
  resolve(definition: ServerDefinition, origins: Origins, beside?: Beside): ServerDefinition
  /** The agents or the sessions are others than before, or state something else. */
  restate(): void
  /**
   * The only way to change the configuration. Validates the whole, records the intent with who makes the change, saves
   * with comments and order kept, applies, emits `config-changed`, and records the outcome.
   */
  change(edit: ConfigEdit, options: ChangeOptions): Promise<void>
  /** Reads the file now instead of waiting for the watcher. */
  reload(): Promise<void>
  close(): Promise<void>
}

export type ConfigParts = {
  readonly file: string
  readonly clock: Clock
  readonly log: Log
  readonly environment: Environment
  readonly emit: Emitter<EventTable>['emit']
  /** Where the intent of a change is recorded before the change, and its outcome after it. */
  readonly record: ConfigChangeStore
  readonly seal: Seal
  /** The text in force is in a database that several gateways share. */
  readonly shared?: SharedConfig | undefined
  /** The agents and sessions beside those that the file names. */
  readonly roster?: () => Roster
}

/** `judge` throws if the change is not allowed. It is called with the configuration in force that the change is made to. */
export type ChangeOptions = { readonly by: Principal; readonly judge?: () => void }

type InForce = ConfigText & { readonly config: Config; readonly value: unknown; readonly views: Views }
type Parsed = { readonly config: Config; readonly value: unknown }

const nobody: Roster = { agents: [], sessions: [] }

/** How long a text that looks unfinished may still grow before it is read as it is. */
const patience = 1000
/** How long to wait before trying again what the database refused. */
const retryMs = 1000
/** How often a change is worked out again because somebody else changed the text at the same time. */
const mostAttempts = 5
const applied: ChangeOutcome = { state: 'applied' }
const gatewayEnded = { code: 'storage-unavailable', message: 'The gateway ended before it recorded the outcome' }

/** The live configuration of one file. A mistake refuses the start; later it changes nothing. */
export async function createConfig(parts: ConfigParts): Promise<ConfigStore> {
  const { clock, log, environment, emit, record, seal, shared, roster = () => nobody } = parts
  const file = toAbsolute(parts.file)
  const source = shared ? createSharedSource({ file, shared, findAuthor }) : createFileSource(file)
  let inForce = toInForce(await readFirst(source), roster())
  let rejected: readonly ConfigProblem[] = []
  let cancelWait = (): void => undefined
  let closed = false
  // One after the other, so that no change is worked out from what another is about to replace.
  const turns = createTurns()

  async function findAuthor(): Promise<string> {
    return (await record.findInForce())?.by ?? fileAuthor
  }

  /** Whoever shares it hears of it after the turn, because this gateway hears of it too. */
  async function inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = await turns(task)
    await source.settle()
    return result
  }

  function accept({ by, elsewhere, ...next }: AuthoredText, parsed: Parsed): void {
    const changed = listChanged(inForce.config, parsed.config)
    const healed = rejected.length > 0
    inForce = toInForce({ ...next, ...parsed }, roster())
    rejected = []
    if (changed.length > 0 || healed) emit('config-changed', { changed, by, ...(elsewhere && { elsewhere }) })
  }

  /** Somebody took a mistake back: nothing differs, but what was reported is not true any more. */
  function heal(): void {
    if (rejected.length === 0) return
    rejected = []
    emit('config-changed', { changed: [], by: fileAuthor })
  }

  function reject(problems: readonly ConfigProblem[]): void {
    const lines = problems.map(formatProblem)
    const known = rejected.map(formatProblem)
    rejected = problems
    if (lines.join('\n') !== known.join('\n')) emit('config-rejected', { file, problems: lines })
  }

  /** Reads until nothing is new: a change by another gateway may come before an edit of the file. */
  async function load(): Promise<void> {
    cancelWait()
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const seen = await source.read(inForce)
      if ('problems' in seen) return reject(seen.problems)
      if (seen.text === inForce.text) return heal()
      const reading = parseConfig(seen.file, seen.text)
      if (!reading.ok) return reject(reading.problems)
      if (seen.elsewhere) accept(seen, reading)
      else await carryOut(seen, reading, { subject: 'config', body: { file } })
    }
  }

  async function notice(): Promise<void> {
    if (!(await source.isUnfinished(inForce))) return load()
    cancelWait()
    cancelWait = clock.after(patience, () => later(load))
  }

  async function change(edit: ConfigEdit, { by, judge }: ChangeOptions): Promise<void> {
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      await load() // somebody's edit of the file comes first
      if (rejected.length > 0) throw toConfigError(rejected)
      judge?.()
      const text = editText(inForce, edit)
      if (text === inForce.text) return
      const next = { file: inForce.file, text, by: toPrincipalKey(by) }
      const reading = parseConfig(next.file, text)
      if (!reading.ok) throw toConfigError(reading.problems)
      const after = toInForce({ ...next, ...reading }, roster())
      if ((await carryOut(next, reading, describeEdit(edit, inForce, after))) === 'done') return
    }
    throw keepsChanging(file)
  }

  /** The path of every change: its intent is recorded, it is saved, it takes effect, its outcome is recorded. */
  async function carryOut(
    next: AuthoredText,
    parsed: Parsed,
    { subject, body }: Pick<Change, 'subject' | 'body'>,
  ): Promise<'done' | 'changed-meanwhile'> {
    const changed = listChanged(inForce.config, parsed.config)
    const after = { by: next.by, marks: toMarks(parsed.value, seal) }
    // Comments, order and layout are no change: nothing takes effect.
    if (changed.length === 0) return restyle(next, parsed, after)
    const begun = await record.begin({ principal: next.by, subject, body: { ...body, changed }, inForce: after })
    crashPoint('a change is recorded, not saved')
    const saved = await source.save(next, inForce, record.toEnd(begun, applied)).catch(async (error: unknown) => {
      await record.end(begun, notApplied(error))
      throw error
    })
    if (saved === 'changed-meanwhile') {
      await record.end(begun, notApplied(keepsChanging(file)))
      return saved
    }
    crashPoint('a change is saved, not applied')
    accept(next, parsed)
    if (saved === 'saved') await record.end(begun, applied)
    return 'done'
  }

  async function restyle(
    next: AuthoredText,
    parsed: Parsed,
    after: ConfigInForce,
  ): Promise<'done' | 'changed-meanwhile'> {
    if ((await source.save(next, inForce, [])) === 'changed-meanwhile') return 'changed-meanwhile'
    accept(next, parsed)
    // A default that is now written out gives other marks: the next start must not take it for a change.
    await record.keepInForce(after).catch(() => undefined)
    return 'done'
  }

  /** What the database or the file refuses now is tried again. */
  function later(task: () => Promise<void>): void {
    inTurn(task).catch((error: unknown) => {
      log.error({ file, code: toGatewayError(error).code }, 'The configuration could not be reloaded')
      cancelWait()
      if (!closed) cancelWait = clock.after(retryMs, () => later(load))
    })
  }

  /** What differs from the configuration that was last in force was changed in the file while no gateway ran. */
  async function catchUp(): Promise<void> {
    const { value } = inForce
    let known = await record.findInForce()
    for (const unfinished of await record.unfinished()) {
      const outcome = toOutcome(unfinished.inForce, known)
      await record.end(unfinished, outcome)
      if (outcome.state === 'applied') known = unfinished.inForce
    }
    const after = { by: fileAuthor, marks: toMarks(value, seal) }
    if (known === undefined) return record.keepInForce(after)
    const changed = listUnlike(known.marks, value, seal)
    if (changed.length === 0) return
    const body = { file, changed, while: 'stopped' }
    const begun = await record.begin({ principal: fileAuthor, subject: 'config', body, inForce: after })
    await record.end(begun, applied)
  }

  function toOutcome(after: ConfigInForce, before: ConfigInForce | undefined): ChangeOutcome {
    if (isLike(after)) return applied
    return { state: before && isLike(before) ? 'not-applied' : 'unknown', error: gatewayEnded }
  }

  function isLike({ marks }: ConfigInForce): boolean {
    return listUnlike(marks, inForce.value, seal).length === 0
  }

  if (!shared) await catchUp()
  const stopSharing = shared?.onChange(() => inTurn(load))
  const watcher = await watchFile({ file, clock, log, onQuiet: () => later(notice) })
  await start().catch(async (error: unknown) => {
    await close()
    throw error
  })

  /** Loads what was written before the watch began. */
  async function start(): Promise<void> {
    await inTurn(load)
    if (shared && rejected.length > 0) throw toConfigError(rejected)
  }

  async function close(): Promise<void> {
    closed = true
    stopSharing?.()
    await watcher.close()
    cancelWait()
    await inTurn(async () => cancelWait())
  }

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
    describePrincipal: (key) => describePrincipal(key, (scope) => ownerOf(inForce.views.settings, scope)),
    connections: () => inForce.views.connections(),
    resolve: (definition, origins, beside) =>
      resolveWith(environment, inForce.views.settings, { definition, origins, beside }),
    restate() {
      const before = toRosterPrint(inForce.views.settings)
      const settings = toSettings(inForce.config, roster())
      inForce = { ...inForce, views: createViews(settings) }
      if (toRosterPrint(settings) !== before) emit('principals-changed', {})
    },
    change: (edit, options) => inTurn(() => change(edit, options)),
    reload: () => inTurn(load),
    close,
  }
}

async function readFirst(source: ConfigSource): Promise<ConfigText & Parsed> {
  const first = await source.first()
  if ('problems' in first) throw toConfigError(first.problems)
  const reading = parseConfig(first.file, first.text)
  if (!reading.ok) throw toConfigError(reading.problems)
  const { config, value } = reading
  return { ...first, config, value }
}

function toInForce({ file, text, config, value }: ConfigText & Parsed, roster: Roster): InForce {
  return { file, text, config, value, views: createViews(toSettings(config, roster)) }
}

function describePrincipal(key: string, ownerIn: (scope: Scope) => string | undefined): Principal {
  const colon = key.indexOf(':')
  const [kind, name] = [key.slice(0, colon), key.slice(colon + 1)]
  const parsed = Principal.safeParse({ kind, name })
  if (!parsed.success || name === '') throw new GatewayError('request-invalid', `${key} is not KIND:NAME`)
  const owner = kind === 'agent' || kind === 'session' ? ownerIn({ kind, name }) : undefined
  return { ...parsed.data, ...(owner !== undefined && { owner }) }
}

function notApplied(error: unknown): ChangeOutcome {
  const { code, message } = toGatewayError(error)
  return { state: 'not-applied', error: { code, message } }
}

function keepsChanging(file: string): GatewayError {
  return new GatewayError('config-conflict', `${file} keeps changing; nothing was saved`, { file })
}
