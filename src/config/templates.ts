import { GatewayError } from '../contract/errors.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { nounFor } from '../shared/words.ts'

/** Returns the value of a name, if the template at this dotted key may use it. */
export type Lookup = (name: string, key: string) => string | undefined

export type Environment = Readonly<Record<string, string | undefined>>

type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string; readonly fallback?: string }

type Template =
  | { readonly ok: true; readonly pieces: readonly Piece[] }
  | { readonly ok: false; readonly message: string }

/** `${NAME}`, `${NAME:-fallback}`, and `$${` for a literal `${`. */
export function parseTemplate(text: string): Template {
  const pieces: Piece[] = []
  let rest = text
  while (rest !== '') {
    const start = rest.indexOf('${')
    if (start === -1) return { ok: true, pieces: [...pieces, { kind: 'text', text: rest }] }
    if (rest[start - 1] === '$') {
      pieces.push({ kind: 'text', text: `${rest.slice(0, start - 1)}\${` })
      rest = rest.slice(start + 2)
      continue
    }
    pieces.push({ kind: 'text', text: rest.slice(0, start) })
    const end = rest.indexOf('}', start)
    if (end === -1) return { ok: false, message: 'has a ${ without a closing }; write $${ for a literal ${' }
    const variable = toVariable(rest.slice(start + 2, end))
    if (typeof variable === 'string') return { ok: false, message: variable }
    pieces.push(variable)
    rest = rest.slice(end + 1)
  }
  return { ok: true, pieces }
}

/** Names follow the rules of the shell. Errors never contain the text between the braces. */
function toVariable(inner: string): Piece | string {
  const match = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inner)
  if (match?.[1] === undefined) {
    return 'has a template that is neither ${NAME} nor ${NAME:-fallback}; a name has letters, digits and _'
  }
  if (match[2]?.includes('${'))
    return 'has a template inside the fallback of another template; a fallback must be plain text'
  return { kind: 'variable', name: match[1], fallback: match[2] }
}

/** The texts of a definition that may contain templates, by dotted key. */
export function listTemplates(fields: TemplatedFields): [key: readonly (string | number)[], text: string][] {
  return [
    ...single('command', fields.command),
    ...(fields.args ?? []).map((text, index): [(string | number)[], string] => [['args', index], text]),
    ...Object.entries(fields.env ?? {}).map(([name, text]): [string[], string] => [['env', name], text]),
    ...single('url', fields.url),
    ...Object.entries(fields.headers ?? {}).map(([name, text]): [string[], string] => [['headers', name], text]),
  ]
}

type TemplatedFields = {
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
}

function single(key: string, text: string | undefined): [string[], string][] {
  return text === undefined ? [] : [[[key], text]]
}

/**
 * Fills in the templates of a definition when a connection is made. Filled-in values are not parsed as templates,
 * so a value cannot refer to further variables. Throws if a variable is missing.
 */
export function resolveDefinition(
  definition: ServerDefinition,
  lookup: Lookup,
): { readonly definition: ServerDefinition; readonly missing: string[] } {
  const missing = new Set<string>()
  const fill = (key: string, text: string): string => {
    const filled = fillTemplate(text, (name) => lookup(name, key), missing)
    if (filled.includes('\0')) throw refused(key, 'a NUL character')
    return filled
  }
  const resolved = resolveFields(definition, fill)
  if (resolved.transport !== 'stdio') {
    for (const [name, value] of Object.entries(resolved.headers)) {
      if (unsendable.test(value))
        throw refused(`headers.${name}`, 'a line break or another character that is not allowed in headers')
    }
  }
  return { definition: resolved, missing: [...missing].sort() }
}

/** Characters that are not allowed in headers. A line break would start another header or the body. */
const unsendable = /[^\t\x20-\x7e\x80-\xff]/

function refused(key: string, what: string): GatewayError {
  return new GatewayError('config-invalid', `${key} contains ${what} after its variables are filled in`, { key })
}

function resolveFields(definition: ServerDefinition, fill: (key: string, text: string) => string): ServerDefinition {
  const fillAll = (key: string, texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(`${key}.${name}`, text)]))
  if (definition.transport !== 'stdio') {
    return { ...definition, url: fill('url', definition.url), headers: fillAll('headers', definition.headers) }
  }
  return {
    ...definition,
    command: fill('command', definition.command),
    args: definition.args.map((text, index) => fill(`args.${index}`, text)),
    env: fillAll('env', definition.env),
  }
}

function fillTemplate(text: string, lookup: NameLookup, missing: Set<string>): string {
  const template = parseTemplate(text)
  if (!template.ok) throw new GatewayError('config-invalid', `A template ${template.message}`)
  return template.pieces
    .map((piece) => (piece.kind === 'text' ? piece.text : fillPiece(piece, lookup, missing)))
    .join('')
}

type NameLookup = (name: string) => string | undefined

/** As in the shell, the fallback also replaces an empty variable. */
function fillPiece(piece: Extract<Piece, { kind: 'variable' }>, lookup: NameLookup, missing: Set<string>): string {
  const value = lookup(piece.name)
  if (value !== undefined && (value !== '' || piece.fallback === undefined)) return value
  if (piece.fallback !== undefined) return piece.fallback
  missing.add(piece.name)
  return ''
}

/** The gateway's own variables contain its keys and passwords, so no server may get one, even if it is listed. */
export function isOwnVariable(name: string): boolean {
  return /^SALLYPORT_/i.test(name)
}

/** Looks up the variables listed under `environment`, for templates of administrators. */
export function createEnvironmentLookup(environment: Environment, listed: readonly string[]): NameLookup {
  const permitted = new Set(listed.filter((name) => !isOwnVariable(name)))
  return (name) => (permitted.has(name) && Object.hasOwn(environment, name) ? environment[name] : undefined)
}

/** The variables of the process and of the `envFile`, and the names that templates may read. */
export type Variables = { readonly environment: Environment; readonly listed: readonly string[] }

/** Adds the variables of the `envFile`. A variable of the process overrides one of the file. */
export function withEnvFile({ environment, listed }: Variables, values: ReadonlyMap<string, string>): Variables {
  const added = [...values].filter(([name]) => !isOwnVariable(name))
  if (added.length === 0) return { environment, listed }
  const set = Object.entries(environment).filter(([, value]) => value !== undefined)
  return {
    environment: Object.fromEntries([...added, ...set]),
    listed: [...new Set([...listed, ...added.map(([name]) => name)])],
  }
}

/** `withheld`: names in entries that may not read the environment. The error must not show whether they are set. */
export function toMissingError(
  missing: readonly string[],
  { environment, listed, unused }: Variables & { readonly unused?: string | undefined },
  withheld: ReadonlySet<string> = new Set(),
): GatewayError {
  const reasons = missing.map((name) => {
    if (withheld.has(name)) return `${name} (only entries of administrators can read the gateway's variables)`
    if (isOwnVariable(name)) return `${name} (the gateway's own variables are never passed to servers)`
    const isSet = Object.hasOwn(environment, name) && environment[name] !== undefined
    if (isSet && !listed.includes(name)) return `${name} (set, but not listed under \`environment\`)`
    return listed.includes(name) ? `${name} (listed, but not set)` : name
  })
  const noun = nounFor(missing.length, 'A variable is', 'Variables are')
  const readable = missing.some((name) => !withheld.has(name) && !isOwnVariable(name))
  const advice = unused !== undefined && readable ? `. ${unused} is not read: to use it, set \`envFile: .env\`` : ''
  return new GatewayError('variable-missing', `${noun} missing: ${reasons.join(', ')}${advice}`, { missing })
}
