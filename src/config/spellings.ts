import { isPlainObject, isSame, own, type Path, type PlainObject, valueAt } from '../documents/values.ts'
import type { Finding } from './problems.ts'

/** A key or a value of another program, and our own form of it. Paths are relative to the document. */
export type Respelling =
  | { readonly kind: 'rename'; readonly path: Path; readonly name: string }
  | { readonly kind: 'write'; readonly path: Path; readonly value: unknown }

export type Spelled = {
  /** The value of the document in our own spelling. */
  readonly value: unknown
  /** Accepted spellings, with the form to write instead. */
  readonly notices: readonly Finding[]
  /** Spellings whose meaning is not certain. */
  readonly faults: readonly Finding[]
  /** The path in the text of a path in `value`. */
  toWritten(path: Path): Path
  /** The changes that give one scope and some of its servers our own spelling, in order. */
  listSteps(scope: Path, names: readonly string[]): readonly Respelling[]
}

const kinds = ['projects', 'agents', 'users']

/**
 * Reads the spellings of other programs whose meaning is certain: `mcpServers`, `type`, `streamable-http`, a list as
 * `command`. This is one step between the parsed text and the schema, so that nothing else has to know them.
 */
export function respell(root: unknown): Spelled {
  const scopes = listScopePaths(root)
  const counts = countNames(root, scopes)
  const parts = scopes.map((scope) => respellScope(root, scope, (name) => !scope.length || counts.get(name) === 1))
  const byScope = new Map(parts.map((part) => [toId(part.scope), part]))
  return {
    value: parts.reduce((value, { scope, value: own }) => withScope(value, scope, own), root),
    notices: parts.flatMap(({ notices }) => notices),
    faults: parts.flatMap(({ faults }) => faults),
    toWritten(path) {
      const scope = kinds.includes(String(path[0])) ? path.slice(0, 2) : []
      return byScope.get(toId(scope))?.toWritten(path) ?? path
    },
    listSteps(scope, names) {
      const part = byScope.get(toId(scope))
      return part ? [...part.container, ...names.flatMap((name) => part.entries.get(name)?.steps ?? [])] : []
    },
  }
}

function toId(scope: Path): string {
  return JSON.stringify(scope)
}

function listScopePaths(root: unknown): Path[] {
  const named = kinds.flatMap((kind) => {
    const entries = valueAt(root, [kind])
    return isPlainObject(entries) ? Object.keys(entries).map((name) => [kind, name]) : []
  })
  return [[], ...named].filter((scope) => isPlainObject(valueAt(root, scope)))
}

const container = 'mcpServers'

function serversOf(root: unknown, scope: Path): PlainObject {
  const found = valueAt(root, [...scope, 'servers']) ?? valueAt(root, [...scope, container])
  return isPlainObject(found) ? found : {}
}

function countNames(root: unknown, scopes: readonly Path[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of scopes.flatMap((scope) => Object.keys(serversOf(root, scope))))
    counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

type ScopePart = Omit<Spelled, 'listSteps'> & {
  readonly scope: Path
  readonly container: readonly Respelling[]
  readonly entries: ReadonlyMap<string, SpelledEntry & { readonly steps: readonly Respelling[] }>
}

/** `infers`: whether `command` or `url` alone chooses the transport. In a later scope they may refine another entry. */
function respellScope(root: unknown, scope: Path, infers: (name: string) => boolean): ScopePart {
  const fields = valueAt(root, scope)
  const at: PlainObject = isPlainObject(fields) ? fields : {}
  const borrowed = Object.hasOwn(at, container)
  const isBoth = borrowed && Object.hasOwn(at, 'servers')
  const renames = borrowed && !isBoth
  const key = renames ? container : 'servers'
  const entries = new Map(
    Object.entries(serversOf(root, scope)).flatMap(([name, entry]) => {
      if (!isPlainObject(entry)) return []
      const spelled = respellEntry(entry, infers(name))
      const steps = spelled.changes.map((change) => ({ ...change, path: [...scope, 'servers', name, ...change.path] }))
      return [[name, { ...spelled, steps }] as const]
    }),
  )
  const place = (name: string) => (finding: Finding) => ({ ...finding, path: [...scope, key, name, ...finding.path] })
  const spelled = [...entries]
  const named: Finding = { path: [...scope, container], message: accepted('servers') }
  const both: Finding = {
    path: [...scope, container],
    message: 'and `servers` are both present; move the entries of `mcpServers` to `servers`',
  }
  return {
    scope,
    value: respellFields(at, renames, entries),
    container: renames ? [{ kind: 'rename', path: [...scope, container], name: 'servers' }] : [],
    entries,
    notices: [...(renames ? [named] : []), ...spelled.flatMap(([name, { notices }]) => notices.map(place(name)))],
    faults: [...(isBoth ? [both] : []), ...spelled.flatMap(([name, { faults }]) => faults.map(place(name)))],
    toWritten(path) {
      const [servers, name, ...rest] = path.slice(scope.length)
      if (servers !== 'servers') return path
      if (name === undefined) return [...scope, key]
      return [...scope, key, name, ...(entries.get(String(name))?.toWritten(rest) ?? rest)]
    },
  }
}

function respellFields(at: PlainObject, renames: boolean, entries: ScopePart['entries']): PlainObject {
  const fields = Object.entries(at).map(([key, value]): [string, unknown] => {
    const name = renames && key === container ? 'servers' : key
    if (name !== 'servers' || !isPlainObject(value)) return [name, value]
    const servers = Object.entries(value).map(([server, entry]) => [server, entries.get(server)?.fields ?? entry])
    return [name, Object.fromEntries(servers)]
  })
  return Object.fromEntries(fields)
}

/** The top level was copied already, so only named scopes are placed into it. */
function withScope(root: unknown, scope: Path, own: unknown): unknown {
  const [kind, name] = scope.map(String)
  if (kind === undefined || name === undefined) return isPlainObject(root) ? own : root
  if (!isPlainObject(root)) return root
  const entries = root[kind]
  return isPlainObject(entries) ? { ...root, [kind]: { ...entries, [name]: own } } : root
}

type SpelledEntry = {
  readonly fields: PlainObject
  /** Paths are relative to the entry. */
  readonly changes: readonly Respelling[]
  readonly notices: readonly Finding[]
  readonly faults: readonly Finding[]
  toWritten(path: Path): Path
}

/** The spellings of one server entry, as other programs write it. */
export function respellEntry(entry: PlainObject, infers: boolean): SpelledEntry {
  const draft = createDraft(entry)
  moveField(draft, 'serverUrl', 'url')
  if (own(entry, 'httpUrl') !== undefined && toTransport(own(entry, 'transport') ?? own(entry, 'type')) === 'sse')
    draft.fault('httpUrl', 'is the address of a server with `transport: http`; write `url` for sse')
  else moveField(draft, 'httpUrl', 'url')
  if (isPlainObject(own(entry, 'environment'))) moveField(draft, 'environment', 'env')
  turnDisabled(draft)
  turnTransport(draft)
  splitCommand(draft)
  if (infers) inferTransport(draft)
  return draft.finish()
}

type Draft = ReturnType<typeof createDraft>

function createDraft(entry: PlainObject) {
  let fields = entry
  const changes: Respelling[] = []
  const notices: Finding[] = []
  const faults: Finding[] = []
  return {
    find: (key: string): unknown => own(fields, key),
    write(key: string, value: unknown): void {
      changes.push({ kind: 'write', path: [key], value })
      const { [key]: _, ...others } = fields
      if (value === undefined) fields = others
      else fields = { ...fields, [key]: value }
    },
    rename(key: string, name: string): void {
      changes.push({ kind: 'rename', path: [key], name })
      fields = Object.fromEntries(Object.entries(fields).map(([each, value]) => [each === key ? name : each, value]))
    },
    notice(key: string, message: string): void {
      notices.push({ path: [key], message })
    },
    fault(key: string, message: string): void {
      faults.push({ path: [key], message })
    },
    finish: (): SpelledEntry => ({
      fields,
      changes,
      notices,
      faults,
      toWritten: (path) => toWritten(changes, entry, path),
    }),
  }
}

/** Follows the renames back. The arguments of a list as `command` are items of that list. */
function toWritten(changes: readonly Respelling[], entry: PlainObject, path: Path): Path {
  const [first, second] = path
  if (first === 'args' && Array.isArray(own(entry, 'command')) && !Object.hasOwn(entry, 'args'))
    return typeof second === 'number' ? ['command', second + 1] : ['command']
  const renamed = changes.find((change) => change.kind === 'rename' && change.name === first)
  return renamed === undefined ? path : [...renamed.path, ...path.slice(1)]
}

function accepted(form: string): string {
  return `is accepted as a spelling of another program; write \`${form}\``
}

/** The same value under both keys has one meaning. Two values do not. */
function moveField(draft: Draft, from: string, to: string): void {
  if (draft.find(from) === undefined) return
  if (draft.find(to) === undefined) {
    draft.rename(from, to)
    return draft.notice(from, accepted(to))
  }
  drop(draft, from, to, isSame(draft.find(from), draft.find(to)))
}

function drop(draft: Draft, from: string, to: string, same: boolean): void {
  if (!same) return draft.fault(from, `and \`${to}\` are both present and differ; keep only \`${to}\``)
  draft.write(from, undefined)
  draft.notice(from, `repeats \`${to}\`; remove it`)
}

function turnDisabled(draft: Draft): void {
  const disabled = draft.find('disabled')
  if (typeof disabled !== 'boolean') return
  const enabled = draft.find('enabled')
  if (enabled !== undefined) return drop(draft, 'disabled', 'enabled', enabled === !disabled)
  draft.rename('disabled', 'enabled')
  draft.write('enabled', !disabled)
  draft.notice('disabled', accepted(`enabled: ${!disabled}`))
}

const transports: Readonly<Record<string, string>> = {
  stdio: 'stdio',
  local: 'stdio',
  http: 'http',
  'streamable-http': 'http',
  streamableHttp: 'http',
  streamable_http: 'http',
  'http-stream': 'http',
  sse: 'sse',
}

function toTransport(spelling: unknown, address?: unknown): string | undefined {
  if (typeof spelling !== 'string') return undefined
  // `remote` alone does not say which transport it is; with an address it is the current one.
  if (spelling === 'remote') return address === undefined ? undefined : 'http'
  return own(transports, spelling)
}

function turnTransport(draft: Draft): void {
  const [type, transport, url] = ['type', 'transport', 'url'].map(draft.find)
  const meant = toTransport(type, url)
  const stated = toTransport(transport, url)
  if (typeof type === 'string' && meant === undefined && transport === undefined)
    draft.fault('type', 'is not a known transport; write `transport: stdio`, `http` or `sse`')
  if (meant !== undefined && transport !== undefined) drop(draft, 'type', 'transport', meant === stated)
  if (meant !== undefined && transport === undefined) {
    draft.rename('type', 'transport')
    if (meant !== type) draft.write('transport', meant)
    draft.notice('type', accepted(`transport: ${meant}`))
  }
  if (stated === undefined || stated === transport) return
  draft.write('transport', stated)
  draft.notice('transport', accepted(`transport: ${stated}`))
}

function splitCommand(draft: Draft): void {
  const command = draft.find('command')
  if (!Array.isArray(command) || command.length === 0 || !command.every((part) => typeof part === 'string')) return
  const args = draft.find('args')
  if (args !== undefined && !isSame(args, [])) {
    const message = 'is a list, and `args` is present too; write the program as `command` and all arguments as `args`'
    return draft.fault('command', message)
  }
  const [program, ...rest] = command
  draft.write('command', program)
  if (rest.length > 0) draft.write('args', rest)
  draft.notice('command', 'is accepted as a list; write the program as `command` and the rest as `args`')
}

function inferTransport(draft: Draft): void {
  const [command, url] = ['command', 'url'].map(draft.find)
  if (draft.find('transport') !== undefined || draft.find('type') !== undefined) return
  if (command !== undefined && url !== undefined) {
    return draft.fault('url', 'and `command` are both present; keep one of them, and write `transport`')
  }
  if (command === undefined && url === undefined) return
  const transport = command === undefined ? 'http' : 'stdio'
  draft.write('transport', transport)
  draft.notice(
    command === undefined ? 'url' : 'command',
    `has no transport beside it; write \`transport: ${transport}\``,
  )
}
