import { changesIdentity } from '../config/config.ts'
import type { ScopedServer } from '../contract/config.ts'
import { ServerDefinition } from '../contract/server.ts'
import { isSame } from '../documents/values.ts'
import { findLiterals, type Literal, replaceLiterals, toPlaceKey } from '../masking/masking.ts'

/** Settings of the gateway that a file of another program does not know. */
const ownSettings = ['title', 'description', 'enabled', 'defaultRisk', 'trust', 'pinning', 'timeout', 'limits'] as const

/**
 * The imported definition as it would replace an entry of the same name. If it is the same server, the entry's settings
 * that the import does not state stay.
 */
export function replaceEntry(existing: ServerDefinition, stated: ScopedServer): ScopedServer {
  if (changesIdentity(existing, stated)) return stated
  const before: ScopedServer = existing
  const kept = ownSettings.filter((key) => stated[key] === undefined && before[key] !== undefined)
  return {
    ...stated,
    ...Object.fromEntries(kept.map((key) => [key, before[key]])),
    tools: { ...existing.tools, ...stated.tools },
    ...(stated.timeout && { timeout: { ...existing.timeout, ...stated.timeout } }),
  }
}

/** Whether an import would change nothing. A literal secret is equal to any `${NAME}` in its place: values are not compared. */
export function changesNothing(name: string, stated: ScopedServer, existing: ServerDefinition): boolean {
  const replaced = withExistingNames(name, replaceEntry(existing, stated), existing)
  const parsed = ServerDefinition.safeParse(replaced)
  return parsed.success && isSame({ ...parsed.data }, { ...existing })
}

/** Whether two definitions lead to the same server with the same credentials. */
export function isSameServer(name: string, stated: ScopedServer, existing: ServerDefinition): boolean {
  if (changesIdentity(existing, stated)) return false
  const left = ServerDefinition.safeParse(withExistingNames(name, stated, existing))
  return left.success && isSame(toLink(left.data), toLink(existing))
}

function toLink(definition: ServerDefinition): unknown {
  if (definition.transport !== 'stdio') {
    const { transport, url, headers } = definition
    return { transport, url, headers }
  }
  const { transport, command, args, env, cwd = '', secretsInArguments } = definition
  return { transport, command, args, env, cwd, secretsInArguments }
}

/** The definition with the names of the existing entry in the place of its literal secrets. */
function withExistingNames(name: string, stated: ScopedServer, existing: ScopedServer): ScopedServer {
  const literals = findLiterals(name, stated)
  const places = new Map(literals.map(({ place }) => [toPlaceKey(place), place]))
  const names = new Map<Literal, string>()
  for (const [key, place] of places) {
    const here = literals.filter((literal) => toPlaceKey(literal.place) === key)
    const found = matchNames(textAt(stated, place), here, textAt(existing, place))
    if (found === undefined) return stated
    for (const [index, literal] of here.entries()) names.set(literal, found[index] ?? '')
  }
  return replaceLiterals(stated, literals, (literal) => names.get(literal) ?? '')
}

function textAt(definition: ScopedServer, place: Literal['place']): string {
  if (place.field === 'args') return definition.args?.[place.index] ?? ''
  if (place.field === 'headers' || place.field === 'env') {
    const texts = definition[place.field] ?? {}
    return Object.hasOwn(texts, place.key) ? (texts[place.key] ?? '') : ''
  }
  return definition[place.field] ?? ''
}

/** The templates of the existing text in the places of the literals; undefined if the rest of the texts differs. */
function matchNames(text: string, literals: readonly Literal[], existing: string): string[] | undefined {
  const names: string[] = []
  let rest = existing
  let end = 0
  for (const literal of literals) {
    const before = text.slice(end, literal.start)
    if (!rest.startsWith(before)) return undefined
    const template = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}/.exec(rest.slice(before.length))?.[0]
    if (template === undefined) return undefined
    names.push(template)
    rest = rest.slice(before.length + template.length)
    end = literal.end
  }
  return rest === text.slice(end) ? names : undefined
}
