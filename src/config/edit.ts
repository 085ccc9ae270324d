import type { Config, ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Risk } from '../contract/risk.ts'
import { Rule } from '../contract/rule.ts'
import { globalScope, type Scope, toScopeKey } from '../contract/scope.ts'
import { ServerDefinition, ServerPatch, type ToolOverride } from '../contract/server.ts'
import { editDocument } from '../documents/edit.ts'
import { DocumentError } from '../documents/error.ts'
import { type Format, findFormat } from '../documents/parse.ts'
import {
  isPlainObject,
  isSame,
  type Path,
  type PlainObject,
  type Step,
  toKey,
  valueAt,
  withValueAt,
} from '../documents/values.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { pathOfScope } from './check.ts'
import { changesIdentity } from './merge.ts'
import { isProjectEdit, type Planned, type ProjectEdit, planProject } from './project-edits.ts'
import { parseConfig } from './read.ts'
import { type SpelledPlace, toOwnSpelling } from './respell-text.ts'
import { chainOf, effective } from './scopes.ts'

type Target = { readonly name: string; readonly scope?: Scope }
type SwitchEdit = Target & { readonly kind: 'enable-server'; readonly enabled: boolean }

/** A change of servers or of the rules in one scope, by default the global scope. `set-server` adds or replaces. */
export type ConfigEdit =
  | ServersEdit
  | (Target & { readonly kind: 'add-server'; readonly definition: ServerDefinition | ScopedServer })
  | (Target & { readonly kind: 'set-server'; readonly definition: ServerDefinition | ScopedServer })
  | (Target & { readonly kind: 'remove-server' })
  | SwitchEdit
  | RisksEdit
  | RulesEdit
  | EntryEdit

/** Sets the risks of some tools by their original names. The rest of the entry stays unchanged. */
type RisksEdit = Target & { readonly kind: 'set-risks'; readonly risks: Readonly<Record<string, Risk>> }

/** All rules of one scope. */
type RulesEdit = { readonly kind: 'set-rules'; readonly scope?: Scope; readonly rules: readonly Rule[] }
type ServerEdit = Exclude<ConfigEdit, RulesEdit | EntryEdit | ServersEdit>

/** Adds servers of one or more scopes in one change. */
export type ServersEdit = {
  readonly kind: 'add-servers'
  readonly servers: readonly AddedServer[]
  /** Names that are added to the list `environment`. */
  readonly environment: readonly string[]
  /** The programs or forms of configuration that the servers come from, for the record. */
  readonly from: readonly string[]
}
export type AddedServer = {
  readonly name: string
  readonly scope: Scope
  readonly definition: ServerDefinition | ScopedServer
  /** Whether the server replaces an entry of the same name. Otherwise such an entry is an error. */
  readonly replaces: boolean
}

/** Edits that remove whole entries of users, agents and projects. */
type EntryEdit = { readonly kind: 'remove-scope'; readonly scope: Scope } | ProjectEdit

export type EditableFile = {
  readonly file: string
  readonly text: string
  readonly config: Config
  /** The value of the file in our own spelling, without defaults. */
  readonly value: unknown
}

/** The text after a change. All other text stays unchanged. The caller validates the result. */
export function editText(editable: EditableFile, edit: ConfigEdit): string {
  return edit.kind === 'add-servers' ? addServers(editable, edit) : editOnce(editable, edit)
}

/** One step for each scope: its servers are based on those of earlier scopes, which may be new too. */
function addServers(editable: EditableFile, { servers, environment }: ServersEdit): string {
  const scopes = new Map(servers.map(({ scope }) => [toScopeKey(scope), scope]))
  const groups = [...scopes.values()].flatMap((scope): ScopeEdit[] => {
    const added = servers.filter((server) => toScopeKey(server.scope) === toScopeKey(scope))
    // The editor of TOML changes one table at a time.
    const isToml = findFormat(editable.file) === 'toml'
    return (isToml ? added.map((server) => [server]) : [added]).map((group) => ({
      kind: 'add-to-scope',
      scope,
      servers: group,
    }))
  })
  const edits = environment.length === 0 ? groups : [...groups, { kind: 'add-variables' as const, names: environment }]
  return edits.reduce((before, edit) => {
    const text = editOnce(before, edit)
    const reading = parseConfig(before.file, text)
    const { config, value } = reading.ok ? reading : before
    return { file: before.file, text, config, value }
  }, editable).text
}

type ScopeEdit = { readonly kind: 'add-to-scope'; readonly scope: Scope; readonly servers: readonly AddedServer[] }
type VariablesEdit = { readonly kind: 'add-variables'; readonly names: readonly string[] }
type SingleEdit = Exclude<ConfigEdit, ServersEdit> | ScopeEdit | VariablesEdit

function editOnce({ file, text, config, value }: EditableFile, edit: SingleEdit): string {
  const format = findFormat(file) ?? 'yaml'
  const planned = isProjectEdit(edit) ? planProject(config, value, edit) : [plan({ config, value, format }, edit)]
  if (planned.every(({ steps }) => steps.length === 0)) return text
  let base: Path = []
  try {
    let edited = toOwnSpelling({ text, format }, toPlace(edit))
    for (const { steps, base: at } of planned) {
      base = at
      const next = editDocument(edited.text, format, { steps, base, value: edited.value })
      edited = {
        text: next,
        value: steps.reduce((root, step) => withValueAt(root, step.path, step.value), edited.value),
      }
    }
    return edited.text
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    const message = `${file}: ${toKey(base)}: ${error.message}; change it in the file`
    throw new GatewayError('config-invalid', message, { file }, { cause: error })
  }
}

/** The scope that an edit of servers changes, and the entries that it keeps. */
function toPlace(edit: SingleEdit): SpelledPlace | undefined {
  if (edit.kind === 'add-to-scope') {
    return { scope: pathOfScope(edit.scope), names: edit.servers.map(({ name }) => name) }
  }
  if (!('name' in edit)) return undefined
  const { name, scope = globalScope } = edit
  return { scope: pathOfScope(scope), names: edit.kind === 'remove-server' ? [] : [name] }
}

function plan(
  { config, value, format }: { config: Config; value: unknown; format: Format },
  edit: Exclude<SingleEdit, ProjectEdit>,
): Planned {
  switch (edit.kind) {
    case 'add-to-scope': {
      const planned = edit.servers.map(({ replaces, ...server }) => {
        const single = { ...server, kind: replaces ? ('set-server' as const) : ('add-server' as const) }
        const base = pathOfServer(config, single)
        return { base, steps: planSteps(config, value, single, base) }
      })
      return { base: planned[0]?.base ?? [], steps: planned.flatMap(({ steps }) => steps) }
    }
    case 'add-variables': {
      const names = [...new Set([...config.environment, ...edit.names])]
      return { base: [], steps: [{ path: ['environment'], value: names }] }
    }
    case 'set-rules': {
      const base = pathOfRules(config, edit)
      return { base, steps: planRules(value, edit, base, format) }
    }
    case 'remove-scope': {
      const base = pathOfScope(edit.scope)
      return { base, steps: valueAt(value, base) === undefined ? [] : [{ path: base, value: undefined }] }
    }
    default: {
      const base = pathOfServer(config, edit)
      return { base, steps: planSteps(config, value, edit, base) }
    }
  }
}

function pathOfServer(config: Config, { name, scope = globalScope }: ServerEdit): Path {
  return [...pathOfStated(config, scope, 'Servers'), 'servers', name]
}

function pathOfRules(config: Config, { scope = globalScope }: RulesEdit): Path {
  return [...pathOfStated(config, scope, 'Rules'), 'rules']
}

function pathOfStated(config: Config, scope: Scope, what: string): Path {
  if (scope.kind === 'session' || scope.kind === 'automation') {
    throw new GatewayError('request-invalid', `${what} of a scope of kind ${scope.kind} are not stored in the file`)
  }
  if (scope.kind === 'project' && !Object.hasOwn(config.projects, scope.name)) {
    throw new GatewayError('request-invalid', `No project is named ${scope.name}`)
  }
  return pathOfScope(scope)
}

/** Unchanged rules keep their text. New rules are written without defaults. */
function planRules(root: unknown, { rules }: RulesEdit, path: Path, format: Format): Step[] {
  const current = valueAt(root, path)
  const stated = Array.isArray(current) ? current.filter(isPlainObject) : []
  const known = new Map(stated.map((rule) => [toCanonicalText(compact(Rule.parse(rule))), rule]))
  const wanted = rules.map(
    (rule) => known.get(toCanonicalText(compact(rule))) ?? withoutDefaults(compact(rule), ruleDefaults, []),
  )
  if (isSame(stated, wanted)) return []
  // TOML has no empty list of tables.
  return [{ path, value: wanted.length === 0 && format === 'toml' ? undefined : wanted }]
}

const ruleDefaults = { approvers: 'any' }

function planSteps(config: Config, root: unknown, edit: ServerEdit, path: Path): Step[] {
  const { name, scope = globalScope } = edit
  const current = valueAt(root, path)
  if (edit.kind === 'enable-server') return planSwitch(config, edit, path, current)
  if (edit.kind === 'set-risks') return planRisks(config, edit, path, current)
  if (edit.kind === 'remove-server') {
    if (current === undefined) throw notFound(name, scope)
    return [{ path, value: undefined }]
  }
  if (edit.kind === 'add-server' && current !== undefined) {
    throw new GatewayError('server-exists', `A server named ${name} exists in ${toScopeKey(scope)}`, { name })
  }
  const { wanted, whole } = toStatement(config, edit.definition, name, scope)
  return isPlainObject(current) ? differences(current, wanted, whole, path) : [{ path, value: wanted }]
}

function planSwitch(config: Config, edit: SwitchEdit, path: Path, current: unknown): Step[] {
  const { name, enabled, scope = globalScope } = edit
  if (isPlainObject(current)) {
    const stated = current.enabled ?? (scope.kind === 'global' ? true : undefined)
    return stated === enabled ? [] : [{ path: [...path, 'enabled'], value: enabled }]
  }
  // A later scope can enable or disable an inherited server.
  if (!effective(config, chainOf(config, scope)).servers.has(name)) throw notFound(name, scope)
  return [{ path, value: { enabled } }]
}

function planRisks(
  config: Config,
  { name, scope = globalScope, risks }: RisksEdit,
  path: Path,
  current: unknown,
): Step[] {
  if (isPlainObject(current)) {
    const wanted = compact(withRisks(ServerPatch.parse(current), risks))
    return differences(current, wanted, wanted, path)
  }
  if (!effective(config, chainOf(config, scope)).servers.has(name)) throw notFound(name, scope)
  return [{ path, value: withRisks({}, risks) }]
}

/** Sets the risks of some tools in an entry. The rest stays unchanged. */
export function withRisks(entry: ScopedServer, risks: RisksEdit['risks']): ScopedServer {
  const before = entry.tools?.override ?? {}
  const changed = Object.entries(risks).map(([tool, risk]): [string, ToolOverride] => [
    tool,
    { ...(Object.hasOwn(before, tool) ? before[tool] : undefined), risk },
  ])
  return { ...entry, tools: { ...entry.tools, override: { ...before, ...Object.fromEntries(changed) } } }
}

function notFound(name: string, scope: Scope): GatewayError {
  return new GatewayError('server-not-found', `No server is named ${name} in ${toScopeKey(scope)}`, { name })
}

/** The fields to write, and the same with defaults. A default is only written if it overrides an earlier scope. */
function toStatement(config: Config, definition: PlainObject, name: string, scope: Scope) {
  const before = chainOf(config, scope).slice(0, -1)
  const earlier = effective(config, before).servers.get(name)
  const parsed = ServerDefinition.safeParse(definition)
  if (!parsed.success || (earlier !== undefined && !changesIdentity(earlier.definition, definition))) {
    const stated = compact(definition)
    return { wanted: stated, whole: stated }
  }
  const whole = compact(parsed.data)
  return { wanted: withoutDefaults(whole, compact(defaultsOf(parsed.data)), []), whole }
}

function compact(fields: PlainObject): PlainObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function defaultsOf(definition: ServerDefinition): ServerDefinition {
  const { transport } = definition
  return ServerDefinition.parse(
    transport === 'stdio' ? { transport, command: definition.command } : { transport, url: definition.url },
  )
}

const alwaysWritten = ['transport', 'command', 'url']

function withoutDefaults(fields: PlainObject, defaults: PlainObject, path: Path): PlainObject {
  const kept = Object.entries(fields).flatMap(([key, value]): [string, unknown][] => {
    const standard = Object.hasOwn(defaults, key) ? defaults[key] : undefined
    if (path.length === 0 && alwaysWritten.includes(key)) return [[key, value]]
    if (isSame(value, standard)) return []
    const bothMaps = isPlainObject(value) && isPlainObject(standard)
    return [[key, bothMaps ? withoutDefaults(value, standard, [...path, key]) : value]]
  })
  return Object.fromEntries(kept)
}

/** The smallest set of steps, so that comments and layout are kept. A default that is already in the file stays. */
function differences(current: PlainObject, wanted: PlainObject, whole: PlainObject, path: Path): Step[] {
  const keys = new Set([...Object.keys(current), ...Object.keys(wanted)])
  return [...keys].flatMap((key): Step[] => {
    const [before, after, settled] = [valueAt(current, [key]), valueAt(wanted, [key]), valueAt(whole, [key])]
    if (isSame(before, after) || (after === undefined && isSame(before, settled))) return []
    if (!isPlainObject(before) || !isPlainObject(after)) return [{ path: [...path, key], value: after }]
    return differences(before, after, isPlainObject(settled) ? settled : {}, [...path, key])
  })
}
