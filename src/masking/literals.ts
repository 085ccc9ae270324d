import { SecretName } from '../contract/secret.ts'
import { hiddenMark } from '../lib/secret.ts'
import { type Found, inArgument, inHeader, inUrl, inVariable, type Why } from './literal-rules.ts'
import { isPlaceholder } from './secret-names.ts'
import { findTokenRanges, type Range } from './token-ranges.ts'

/** The text of a server definition that contains a literal secret. */
export type LiteralPlace =
  | { readonly field: 'headers' | 'env'; readonly key: string }
  | { readonly field: 'args'; readonly index: number }
  | { readonly field: 'url' | 'command' }

/** A secret that is written in a server definition, or a placeholder where a secret must be filled in. */
export type Literal = {
  readonly place: LiteralPlace
  readonly why: Why
  /** The value to store, without a scheme such as `Bearer`. Never show it. */
  readonly secret: string
  /** The range of the text that `${NAME}` replaces. */
  readonly start: number
  readonly end: number
  /** A valid name for the secret. It may exist already. */
  readonly name: string
}

/** The fields of a definition that can contain literal secrets. */
export type LiteralFields = {
  readonly command?: string | undefined
  readonly args?: readonly string[] | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly url?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** The literal secrets of a definition. `server` is its name: the suggested names begin with it. */
export function findLiterals(server: string, definition: LiteralFields): Literal[] {
  return listFound(server, definition).filter(({ secret }) => !isPlaceholder(secret))
}

/** The places where the definition has a placeholder such as `<your-token>` instead of a secret, or an empty value. */
export function findPlaceholders(server: string, definition: LiteralFields): Literal[] {
  return listFound(server, definition).filter(({ secret }) => isPlaceholder(secret))
}

/**
 * The definition with a text such as `${NAME}` in the place of each literal. A literal in the arguments also sets
 * `secretsInArguments`: the value was visible there before, and the template is refused without this setting.
 */
export function replaceLiterals<Definition extends LiteralFields>(
  definition: Definition,
  literals: readonly Literal[],
  toText: (literal: Literal) => string,
): Definition {
  const replaced = replaceAll(definition, literals, toText)
  const isInArguments = literals.some(({ place }) => place.field === 'args' || place.field === 'command')
  return isInArguments ? { ...replaced, secretsInArguments: true } : replaced
}

/** The definition for display: each literal secret is replaced by `[secret]`. */
export function hideLiterals<Definition extends LiteralFields>(server: string, definition: Definition): Definition {
  const literals = findLiterals(server, definition)
  if (literals.length === 0) return definition
  return replaceAll(definition, literals, () => hiddenMark)
}

/** Definitions for display, by the names of their servers. */
export function hideAllLiterals<Definition extends LiteralFields>(
  servers: Readonly<Record<string, Definition>>,
): Record<string, Definition> {
  return Object.fromEntries(Object.entries(servers).map(([name, entry]) => [name, hideLiterals(name, entry)]))
}

/** The dotted key of a place, such as `headers.Authorization` or `args.2`. */
export function toPlaceKey(place: LiteralPlace): string {
  if (place.field === 'args') return `args.${place.index}`
  return 'key' in place ? `${place.field}.${place.key}` : place.field
}

/** The definition with other texts in the fields that can contain literals. */
export function rewrite<Definition extends LiteralFields>(
  definition: Definition,
  change: (place: LiteralPlace, text: string) => string,
): Definition {
  const { command, args, env, url, headers } = definition
  const all = (field: 'env' | 'headers', texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, change({ field, key }, text)]))
  return {
    ...definition,
    ...(command !== undefined && { command: change({ field: 'command' }, command) }),
    ...(args !== undefined && { args: args.map((text, index) => change({ field: 'args', index }, text)) }),
    ...(env !== undefined && { env: all('env', env) }),
    ...(url !== undefined && { url: change({ field: 'url' }, url) }),
    ...(headers !== undefined && { headers: all('headers', headers) }),
  }
}

function replaceAll<Definition extends LiteralFields>(
  definition: Definition,
  literals: readonly Literal[],
  toText: (literal: Literal) => string,
): Definition {
  const byPlace = new Map<string, Literal[]>()
  for (const literal of literals) {
    const key = toPlaceKey(literal.place)
    byPlace.set(key, [...(byPlace.get(key) ?? []), literal])
  }
  return rewrite(definition, (place, text) => {
    const here = byPlace.get(toPlaceKey(place)) ?? []
    const ends = [0, ...here.map(({ end }) => end)]
    const pieces = here.map((literal, index) => `${text.slice(ends[index], literal.start)}${toText(literal)}`)
    return `${pieces.join('')}${text.slice(ends.at(-1))}`
  })
}

function listFound(server: string, { command, args = [], env = {}, url, headers = {} }: LiteralFields): Literal[] {
  return [
    ...(command === undefined ? [] : inText(server, { field: 'command' }, command, () => [])),
    ...args.flatMap((text, index) =>
      inText(server, { field: 'args', index }, text, (value) => inArgument(value, args[index - 1])),
    ),
    ...Object.entries(env).flatMap(([key, text]) =>
      inText(server, { field: 'env', key }, text, (value) => inVariable(key, value)),
    ),
    ...(url === undefined ? [] : inText(server, { field: 'url' }, url, inUrl)),
    ...Object.entries(headers).flatMap(([key, text]) =>
      inText(server, { field: 'headers', key }, text, (value) => inHeader(key, value)),
    ),
  ]
}

type Rule = (value: string) => Found[]

/** Applies a rule to the parts of a text that are not templates, and to the fallbacks of its templates. */
function inText(server: string, place: LiteralPlace, text: string, rule: Rule): Literal[] {
  const templates = listTemplates(text)
  const search = (value: string) => [...rule(value), ...findTokenRanges(value).map(asToken)]
  const plain = merge(outside(search(text), templates))
  const suggest = (key: string | undefined) => toName(server, place, key)
  const literals = plain.map(({ start, end, why, key }): Literal => {
    // `$${` is the escaped form of `${`. Stored values are not templates, so they are stored without the escape.
    const secret = text.slice(start, end).replaceAll('$${', '${')
    return { place, why, secret, start, end, name: suggest(key) }
  })
  const fallbacks = templates.flatMap(({ start, end, name, fallback }): Literal[] => {
    const [first] = fallback === undefined || fallback === '' ? [] : search(fallback)
    if (first === undefined || fallback === undefined) return []
    return [{ place, why: first.why, secret: fallback, start, end, name: isName(name) ? name : suggest(first.key) }]
  })
  return [...literals, ...fallbacks].sort((left, right) => left.start - right.start)
}

function asToken({ start, end }: Range): Found {
  return { start, end, why: 'token' }
}

type TemplateRange = Range & { readonly name: string; readonly fallback?: string | undefined }

/** The templates of a text. An incomplete template is refused by the check of the configuration. */
function listTemplates(text: string): TemplateRange[] {
  const found: TemplateRange[] = []
  let from = 0
  for (let start = text.indexOf('${'); start !== -1; start = text.indexOf('${', from)) {
    from = start + 2
    if (text[start - 1] === '$') continue
    const end = text.indexOf('}', from)
    if (end === -1) return found
    const inner = text.slice(from, end)
    const colon = inner.indexOf(':-')
    const fallback = colon === -1 ? undefined : inner.slice(colon + 2)
    found.push({ start, end: end + 1, name: colon === -1 ? inner : inner.slice(0, colon), fallback })
    from = end + 1
  }
  return found
}

/** The ranges that contain no part of a template, in order. */
function outside(found: readonly Found[], templates: readonly TemplateRange[]): Found[] {
  let index = 0
  return inOrder(found).filter(({ start, end }) => {
    while ((templates[index]?.end ?? Number.POSITIVE_INFINITY) <= start) index++
    return (templates[index]?.start ?? end) >= end
  })
}

/** By start, the longest first. */
function inOrder(found: readonly Found[]): Found[] {
  return [...found].sort((left, right) => left.start - right.start || right.end - left.end)
}

/** Joins ranges that overlap. */
function merge(found: readonly Found[]): Found[] {
  const merged: Found[] = []
  for (const range of found) {
    const last = merged.at(-1)
    if (last === undefined || range.start >= last.end) merged.push(range)
    else merged[merged.length - 1] = { ...last, end: Math.max(last.end, range.end) }
  }
  return merged
}

const mostNameCharacters = 120

/** `GITHUB_TOKEN` for this variable, `GITHUB_AUTHORIZATION` for a header of the server `github`. */
function toName(server: string, place: LiteralPlace, key: string | undefined): string {
  const inner = key ?? ('key' in place ? place.key : place.field === 'url' ? 'URL_TOKEN' : 'TOKEN')
  const [prefix, own] = [toWords(server), toWords(inner)]
  const isWhole = place.field === 'env' && key === undefined && own.includes('_') && !generic.has(own)
  const name = isWhole || own.startsWith(`${prefix}_`) ? own : `${prefix}_${own.replace(/^X_/, '')}`
  const cut = name.slice(0, mostNameCharacters)
  return isName(cut) ? cut : `_${cut}`
}

/** Names that several servers use for different values. */
const generic: ReadonlySet<string> = new Set([
  'ACCESS_KEY',
  'ACCESS_TOKEN',
  'API_KEY',
  'API_TOKEN',
  'AUTH_TOKEN',
  'BEARER_TOKEN',
  'CLIENT_SECRET',
  'PRIVATE_KEY',
  'REFRESH_TOKEN',
  'SECRET_KEY',
])

function toWords(text: string): string {
  return text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase()
}

function isName(name: string): boolean {
  return SecretName.safeParse(name).success
}
