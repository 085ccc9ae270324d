import { resolve as toAbsolute } from 'node:path'
import type { Config } from '../contract/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import { Principal, toPrincipalKey } from '../contract/principal.ts'
import { globalScope, type Scope, type ScopeKey, toScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import type { Clock } from '../lib/clock.ts'
import { crashPoint } from '../lib/crash-point.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import { createTurns } from '../lib/turns.ts'
import type { Storage } from '../storage/storage.ts'
import type { AcceptedFile, AcceptedFileStore } from '../storage/tables/accepted-files.ts'
import type { Change } from '../storage/tables/audit.ts'
import type { ChangeOutcome, ConfigChangeStore, ConfigInForce } from '../storage/tables/config-changes.ts'
import type { FilePlace } from './accepted.ts'
import { createAcceptedFiles } from './accepted-files.ts'
import { listChanged } from './changes.ts'
import { describeEdit } from './describe.ts'
import { type ConfigEdit, editText } from './edit.ts'
import {
  createEnvFile,
  findUnusedEnvFile,
  listUsers,
  prepareEnvFile,
  toEnvPath,
  type VariableChange,
} from './env-file.ts'
import { listUnlike, type Seal, toMarks } from './marks.ts'
import type { EffectiveServer, Origins } from './merge.ts'
import { type ConfigProblem, formatProblem, toConfigError } from './problems.ts'
import { locateKey, parseConfig } from './read.ts'
import {
  beneathSession,
  type ConnectionSpec,
  chainOf,
  type EffectiveConfig,
  type FileServers,
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
import {
  type AuthoredText,
  type ConfigSource,
  type ConfigText,
  createFileSource,
  databaseAuthor,
  fileAuthor,
} from './source.ts'
import { createEnvironmentLookup, type Environment, withEnvFile } from './templates.ts'
import { type Beside, createViews, resolveWith, type Views } from './views.ts'
import { watchFile } from './watch.ts'

export { type FilePlace, placeOf } from './accepted.ts'
export { createChangeLimit } from './change-limit.ts'
export { findServerFault } from './check.ts'
export { type AddedServer, type ConfigEdit, withRisks } from './edit.ts'
export { listNames, readEnvFile, toEnvPath, type VariableChange } from './env-file.ts'
export { type ConfigPlaces, findConfigFile, listConfigPlaces, schemaFile, starterConfig } from './find.ts'
export { toShownConfig } from './literals.ts'
export { createSeal, type Seal } from './marks.ts'
export {
  type Judgement,
  mayChangeServer,
  type Place,
  type ServerAct,
  seesDefinition,
} from './members.ts'
export {
  changesIdentity,
  type EffectiveServer,
  isComplete,
  type Origins,
  originOf,
  originsOf,
  type PinnedEntry,
  withTrust,
} from './merge.ts'
export { type ConfigProblem, formatProblem, toConfigError } from './problems.ts'
export { listPatternsBetween } from './project-edits.ts'
export { demandValid, parseConfig, type Reading, readConfig, readRuleSet } from './read.ts'
export { planConfigRemoval } from './removal.ts'
export { saveText } from './save.ts'
export { configSchema } from './schema.ts'
export {
  type ConnectionSpec,
  connections,
  type EffectiveConfig,
  effective,
  type FileServers,
  isTrusted,
  projectOf,
  type Roster,
  type SessionOrigin,
  type SessionSettings,
  scopesOf,
  toSettings,
} from './scopes.ts'
export { parseServerFile, type ServerFileReading } from './server-file.ts'
export { type SharedConfig, toSharedConfig } from './shared-source.ts'
export {
  createEnvironmentLookup,
  type Environment,
  type Lookup,
  parseTemplate,
  resolveDefinition,
  type Variables,
  withEnvFile,
} from './templates.ts'
export type { Beside } from './views.ts'
export { watchFile } from './watch.ts'

export type ConfigStore = {
  readonly file: string
  current(): Config
  /** The problems of the file on disk, if it was rejected when it was last read. */
  rejected(): readonly ConfigProblem[]
  /** Files beside the configuration whose newest content is not in use, with the reason. */
  notices(): readonly string[]
  effective(principal: Principal): EffectiveConfig
  /** The effective settings in a scope: its own and the inherited ones. */
  effectiveIn(scope: Scope): EffectiveConfig
  /** The settings that are written in the scope itself. */
  statedIn(scope: Scope): Statements
  /** The settings that the scope inherits, without its own. */
  inheritedIn(scope: Scope): EffectiveConfig
  /** The settings that a session with this owner, agent and project would inherit. */
  beneath(session: SessionOrigin): EffectiveConfig
  /** The scopes that contain settings. */
  scopes(): readonly Scope[]
  /** The scopes whose settings apply to the principal. */
  usedBy(principal: Principal): ReadonlySet<ScopeKey>
  /** Whether only administrators can change the scope. */
  trusts(scope: ScopeKey): boolean
  /** Whether `allow` rules of the scope are ignored: its rules can only be stricter. */
  onlyTightens(scope: ScopeKey): boolean
  /** The owner of the session or agent; undefined if there is none. */
  ownerOf(scope: Scope): string | undefined
  /** A principal from its kind and name, such as `agent:reviewer`, with its owner if known. */
  describePrincipal(key: string): Principal
  connections(): readonly ConnectionSpec[]
  /** The servers of all scopes, each as often as it differs between scopes. */
  servers(): readonly EffectiveServer[]
  /** Fills in templates with values that the scope of each template may use; throws `variable-missing`. */
  resolve(definition: ServerDefinition, origins: Origins, beside?: Beside): ServerDefinition
  /** Whether `${NAME}` in this scope can read an environment variable that is set. */
  readsVariable(name: string, author: ScopeKey): boolean
  /** The accepted content of a file of servers; undefined if nothing was accepted. */
  findAccepted(place: FilePlace): AcceptedFile | undefined
  /** The file that an entry of the scope comes from; undefined if the entry is in the configuration. */
  fileOf(scope: Scope, server: string): string | undefined
  /** Call when agents or sessions, or their settings, have changed. */
  restate(): void
  /**
   * The only way to change the configuration. Validates the whole text, records the intent with its author, saves
   * with comments and order kept, applies, emits `config-changed`, and records the outcome.
   */
  change(edit: ConfigEdit, options: ChangeOptions): Promise<void>
  /** Puts the content of a file of servers into effect. `judge` returns the content to accept, or throws. */
  accept(judge: () => AcceptedFile): Promise<void>
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
  /** Stores the intent of a change before the change, and its outcome after it. */
  readonly record: ConfigChangeStore
  readonly seal: Seal
  /** Set if the text in force is in a database that several gateways share. */
  readonly shared?: SharedConfig | undefined
  /** The accepted contents of files of servers. */
  readonly accepted?: AcceptedFileStore
  /** Agents and sessions that are not in the file. */
  readonly roster?: () => Roster
  /** Servers of a file that an administrator has confirmed. */
  readonly beneath?: () => FileServers | undefined
  /** Records changes of the variables in the `envFile`. */
  readonly audit?: Pick<Storage['audit'], 'append'>
  /** Called after the variables of the `envFile` have changed. */
  readonly onVariables?: (change: VariableChange) => void
}

/** `judge` throws if the change is not allowed. It is called with the configuration in force that the change is made to. */
export type ChangeOptions = { readonly by: Principal; readonly judge?: () => void }

type InForce = ConfigText & { readonly config: Config; readonly value: unknown; readonly views: Views }
type Parsed = { readonly config: Config; readonly value: unknown }
/** The text that a change replaces, and the parts that differ. */
type Replacing = { readonly expected?: ConfigText; readonly changed?: readonly string[] }

const emptyRoster: Roster = { agents: [], sessions: [] }

/** Milliseconds to wait for the rest of an unfinished file before it is read anyway. */
const unfinishedMs = 1000
/** Milliseconds before the configuration is loaded again after an error. */
const retryMs = 1000
/** Number of attempts to make a change if the text is changed at the same time by a person or gateway. */
const mostAttempts = 5
const applied: ChangeOutcome = { state: 'applied' }
const gatewayEnded = { code: 'storage-unavailable', message: 'The gateway stopped before it recorded the outcome' }

/** The live configuration of one file. A mistake prevents the start. Later, a file with a mistake is ignored. */
export async function createConfig(parts: ConfigParts): Promise<ConfigStore> {
  const { clock, log, environment, emit, record, seal, shared, roster = () => emptyRoster } = parts
  const { beneath = () => undefined } = parts
  const file = toAbsolute(parts.file)
  const source = shared ? createSharedSource({ file, shared }) : createFileSource(file)
  const accepted = await createAcceptedFiles(parts.accepted)
  let inForce = toInForce(await readFirst(source))
  let rejected: readonly ConfigProblem[] = []
  let cancelWait = (): void => undefined
  /** Recorded once only: gateways with different keys would otherwise record the same text in turns, without end. */
  let recordedOutside: string | undefined
  let closed = false
  const firstVariables = await prepareEnvFile(toEnvPath(file, inForce.config))
  const envFile = createEnvFile({ clock, log, environment, first: firstVariables, onChange: tellVariables })
  // Changes run one after the other, so that none is based on a text that another change replaces.
  const turns = createTurns()

  /** Announces to the other gateways after the turn: this gateway receives the announcement too and needs a turn for it. */
  async function inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = await turns(task)
    await source.settle()
    return result
  }

  function toInForce({ file: from, text, config, value }: ConfigText & Parsed): InForce {
    return {
      file: from,
      text,
      config,
      value,
      views: createViews(toSettings(config, roster(), { accepted: accepted.list(), beneath: beneath() })),
    }
  }

  /** The connections of the configuration in force that read one of these variables connect again. */
  function tellVariables(names: readonly string[], path: string): void {
    const connections = listUsers(inForce.views.connections(), names)
    const change = { principal: fileAuthor, subject: 'config', body: { change: 'variables', file: path, names } }
    void Promise.resolve(parts.audit?.append(change))
      .catch((error: unknown) => log.error({ code: toGatewayError(error).code }, 'a change could not be recorded'))
      .then(() => parts.onVariables?.({ file: path, names, connections }))
  }

  async function apply({ by, elsewhere, ...next }: AuthoredText, parsed: Parsed): Promise<void> {
    const path = toEnvPath(file, parsed.config)
    const prepared = path === envFile.path() ? undefined : await envFile.prepareOrKeep(path)
    const changed = listChanged(inForce.config, parsed.config)
    const healed = rejected.length > 0
    inForce = toInForce({ ...next, ...parsed })
    rejected = []
    if (prepared) envFile.use(prepared)
    if (changed.length > 0 || healed) emit('config-changed', { changed, by, ...(elsewhere && { elsewhere }) })
  }

  /** The file is valid again and equal to the text in force: emits the event so that reported problems disappear. */
  function clearRejected(): void {
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

  /** Reads until there is no new text: after a change by another gateway there may also be an edit of the file. */
  async function load(): Promise<void> {
    cancelWait()
    if (shared) await followAccepted()
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const seen = await source.read(inForce)
      if ('problems' in seen) return reject(seen.problems)
      const isSame = seen.text === inForce.text
      const reading = isSame ? { ok: true as const, ...inForce } : parseConfig(seen.file, seen.text)
      if (!reading.ok) return reject(reading.problems)
      const unreadable = isSame || seen.elsewhere ? undefined : await findEnvProblem(seen, reading.config)
      if (unreadable) return reject([unreadable])
      const unrecorded = seen.recorded ? listUnlike(seen.recorded.marks, reading.value, seal) : []
      if (unrecorded.length > 0 && seen.text !== recordedOutside) await recordOutside(seen, reading, unrecorded)
      else if (isSame) return clearRejected()
      else if (seen.elsewhere) await apply(seen, reading)
      else await carryOut(seen, reading, { subject: 'config', body: { file } })
    }
  }

  /** Another gateway on this database may have put the content of a file into effect. */
  async function followAccepted(): Promise<void> {
    const scopes = await accepted.read()
    const [last] = accepted.list().filter(({ scope }) => scopes.includes(scope))
    if (scopes.length > 0) reapply(scopes, last?.by ?? databaseAuthor, true)
  }

  /** The configuration is the same, but other accepted servers belong to it. */
  function reapply(scopes: readonly string[], by: string, elsewhere?: true): void {
    inForce = toInForce(inForce)
    emit('config-changed', { changed: scopes.map(toPart), by, ...(elsewhere && { elsewhere }) })
  }

  async function acceptFile(judge: () => AcceptedFile): Promise<void> {
    await load() // whoever may accept, and which file, is decided with the newest configuration
    if (rejected.length > 0) throw toConfigError(rejected)
    const next = judge()
    await accepted.accept(next)
    reapply([next.scope], next.by)
  }

  /** Contents that are left after an error are ignored, because no project refers to them, and the next start removes them. */
  async function forgetStale(by: string): Promise<void> {
    await accepted.forgetStale(inForce.config, by).catch((error: unknown) => {
      log.error(
        { file, code: toGatewayError(error).code },
        'Accepted servers of an earlier project could not be removed',
      )
    })
  }

  /** A text in the database that no gateway saved: it is recorded as a change by `database` before it takes effect. */
  async function recordOutside({ file: from, text }: AuthoredText, parsed: Parsed, changed: string[]): Promise<void> {
    recordedOutside = text
    const next = { file: from, text, by: databaseAuthor }
    await carryOut(next, parsed, { subject: 'config', body: {} }, { expected: next, changed })
  }

  /** An edit of the file that names an `envFile` which cannot be used is a mistake in the file. */
  async function findEnvProblem(seen: ConfigText, { envFile: wanted }: Config): Promise<ConfigProblem | undefined> {
    const path = toEnvPath(file, { envFile: wanted })
    if (path === envFile.path()) return undefined
    const failed = await prepareEnvFile(path).then(() => undefined, toGatewayError)
    return failed && { file: seen.file, ...locateKey(seen, ['envFile']), key: 'envFile', message: failed.message }
  }

  async function onFileChanged(): Promise<void> {
    if (!(await source.isUnfinished(inForce))) return load()
    cancelWait()
    cancelWait = clock.after(unfinishedMs, () => later(load))
  }

  async function change(edit: ConfigEdit, { by, judge }: ChangeOptions): Promise<void> {
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      await load() // edits of the file are applied first
      if (rejected.length > 0) throw toConfigError(rejected)
      judge?.()
      refuseRefining(inForce, edit)
      const text = editText(
        { ...inForce, config: { ...inForce.config, servers: inForce.views.settings.servers } },
        edit,
      )
      if (text === inForce.text) return
      const next = { file: inForce.file, text, by: toPrincipalKey(by) }
      const reading = parseConfig(next.file, text)
      if (!reading.ok) throw toConfigError(reading.problems)
      const after = toInForce({ ...next, ...reading })
      if ((await carryOut(next, reading, describeEdit(edit, inForce, after))) === 'done') return
    }
    throw keepsChanging(file)
  }

  /** The steps of every change: record the intent, save, apply, record the outcome. */
  async function carryOut(
    next: AuthoredText,
    parsed: Parsed,
    { subject, body }: Pick<Change, 'subject' | 'body'>,
    { expected = inForce, changed = listChanged(inForce.config, parsed.config) }: Replacing = {},
  ): Promise<'done' | 'conflict'> {
    const after = { by: next.by, marks: toMarks(parsed.value, seal) }
    // A text that differs only in comments, order or layout is saved without a record.
    if (changed.length === 0) return saveLayout(next, parsed, after)
    const begun = await record.begin({ principal: next.by, subject, body: { ...body, changed }, inForce: after })
    crashPoint('a change is recorded, not saved')
    const saved = await source.save(next, expected, record.toEnd(begun, applied)).catch(async (error: unknown) => {
      await record.end(begun, notApplied(error))
      throw error
    })
    if (saved === 'conflict') {
      await record.end(begun, notApplied(keepsChanging(file)))
      return saved
    }
    crashPoint('a change is saved, not applied')
    await apply(next, parsed)
    if (saved === 'saved') await record.end(begun, applied)
    await forgetStale(next.by)
    return 'done'
  }

  async function saveLayout(next: AuthoredText, parsed: Parsed, after: ConfigInForce): Promise<'done' | 'conflict'> {
    // A default that is now written out changes the marks. Without new marks, the next start would record a change.
    const saved = await source.save(next, inForce, record.toKeep(after))
    if (saved === 'conflict') return saved
    await apply(next, parsed)
    if (saved === 'saved') await record.keepInForce(after).catch(() => undefined)
    return 'done'
  }

  /** Runs a task in the background. After an error, the configuration is loaded again later. */
  function later(task: () => Promise<void>): void {
    inTurn(task).catch((error: unknown) => {
      log.error({ file, code: toGatewayError(error).code }, 'The configuration could not be reloaded')
      cancelWait()
      if (!closed) cancelWait = clock.after(retryMs, () => later(load))
    })
  }

  /** Records differences from the configuration that was last in force: the file was changed while no gateway ran. */
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

  if (shared) await record.keepFirst({ by: fileAuthor, marks: toMarks(inForce.value, seal) })
  else await catchUp()
  const stopSharing = shared?.onChange(followShared)
  const watcher = await watchFile({ file, clock, log, onQuiet: () => later(onFileChanged) })
  await start().catch(async (error: unknown) => {
    await close()
    throw error
  })

  /** Announces in the background: an announcement waits for this listener, so waiting for it here would never end. */
  async function followShared(): Promise<void> {
    await turns(load)
    later(async () => {})
  }

  /** Loads changes that were written before the file was watched. */
  async function start(): Promise<void> {
    await inTurn(load)
    await forgetStale(fileAuthor)
    if (shared && rejected.length > 0) throw toConfigError(rejected)
  }

  async function close(): Promise<void> {
    closed = true
    stopSharing?.()
    await watcher.close()
    await envFile.close()
    cancelWait()
    await inTurn(async () => cancelWait())
  }

  return {
    file,
    current: () => inForce.config,
    rejected: () => rejected,
    notices: () => envFile.notices(),
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
    servers: () => inForce.views.servers(),
    resolve(definition, origins, beside) {
      const { settings } = inForce.views
      const variables = withEnvFile({ environment, listed: settings.environment }, envFile.values())
      const unused = () => findUnusedEnvFile(file, settings)
      return resolveWith({ ...variables, unused }, settings, { definition, origins, beside })
    },
    readsVariable(name, author) {
      const { settings } = inForce.views
      const variables = withEnvFile({ environment, listed: settings.environment }, envFile.values())
      if (!isTrusted(settings, author)) return false
      return createEnvironmentLookup(variables.environment, variables.listed)(name) !== undefined
    },
    restate() {
      const before = toRosterPrint(inForce.views.settings)
      inForce = toInForce(inForce)
      if (toRosterPrint(inForce.views.settings) !== before) emit('principals-changed', {})
    },
    findAccepted: accepted.find,
    fileOf: (scope, server) => inForce.views.settings.files?.get(toScopeKey(scope))?.get(server),
    change: (edit, options) => inTurn(() => change(edit, options)),
    async accept(judge) {
      await inTurn(() => acceptFile(judge))
      await shared?.announce()
    },
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

function describePrincipal(key: string, ownerIn: (scope: Scope) => string | undefined): Principal {
  const colon = key.indexOf(':')
  const [kind, name] = [key.slice(0, colon), key.slice(colon + 1)]
  const parsed = Principal.safeParse({ kind, name })
  if (!parsed.success || name === '')
    throw new GatewayError('request-invalid', `${key} is not a principal: write KIND:NAME, for example agent:reviewer`)
  const owner = kind === 'agent' || kind === 'session' ? ownerIn({ kind, name }) : undefined
  return { ...parsed.data, ...(owner !== undefined && { owner }) }
}

/** `project:shop` as part of the configuration. */
function toPart(scope: string): string {
  return scope.replace(/^(project):/, '$1s.')
}

/** The configuration is checked without the servers of `mcp-servers.json`, so its projects and agents cannot refine them. */
function refuseRefining({ file, config, views: { settings } }: InForce, edit: ConfigEdit): void {
  if (edit.kind !== 'enable-server' && edit.kind !== 'set-risks') return
  const { name, scope = globalScope } = edit
  const from = settings.files?.get('global')?.get(name)
  if (from === undefined || (scope.kind !== 'project' && scope.kind !== 'agent')) return
  if (own(statementsOf(config, scope).servers, name)) return
  const message = `${name} comes from ${from}, and only users can refine servers of that file. Add a server named ${name} to ${file} first`
  throw new GatewayError('server-read-only', message, { name, file: from })
}

function notApplied(error: unknown): ChangeOutcome {
  const { code, message } = toGatewayError(error)
  return { state: 'not-applied', error: { code, message } }
}

function keepsChanging(file: string): GatewayError {
  return new GatewayError(
    'config-conflict',
    `${file} was changed several times at the same moment; the change was not saved`,
    { file },
  )
}
