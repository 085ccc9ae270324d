import { GatewayError } from '../../contract/errors.ts'

type Listed = { readonly items: readonly { readonly id: string }[]; readonly next?: string | null }

export type IdSource = {
  /** Plural noun for error messages, such as `calls`. */
  readonly noun: string
  /** Prefix before `_` of ids that start with a time. Without it, every page is read. */
  readonly kind?: string
  /** Newest first. */
  list(cursor: string | undefined): Promise<Listed>
}

const timeAndRandom = 19
const mostPages = 50
const mostShown = 10

/** The full id that begins with `given`. Throws for several matches. Without a match it returns `given`. */
export async function findId(given: string, { noun, kind, list }: IdSource): Promise<string> {
  if (kind !== undefined && !isShort(given, kind)) return given
  const found: string[] = []
  let cursor: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const { items, next } = await list(cursor)
    for (const { id } of items) {
      if (id === given) return id
      if (id.startsWith(given)) found.push(id)
    }
    const last = items.at(-1)?.id
    const isPast = kind !== undefined && last !== undefined && last < given
    if (!next || isPast) break
    cursor = next
  }
  const [only] = found
  if (only === undefined || given === '') return given
  if (found.length === 1) return only
  const more = found.length > mostShown ? ` and ${found.length - mostShown} more` : ''
  const message = `${given} matches ${found.length} ${noun}: ${found.slice(0, mostShown).join(', ')}${more}`
  throw new GatewayError('request-invalid', `${message}. Give more characters of the id`, { matches: found })
}

function isShort(given: string, kind: string): boolean {
  const start = `${kind}_`
  return given.startsWith(start) && given.length > start.length && given.length < start.length + timeAndRandom
}

const shortest = 12

/** Shortens ids for a terminal so that they stay unique in the list. Without a terminal, ids are complete. */
export function shorteningIds(ids: readonly string[], width: number | undefined): (id: string) => string {
  if (width === undefined) return (id) => id
  const cutAt = (length: number) => (id: string) => id.slice(0, id.indexOf('_') + 1 + length)
  for (let length = shortest; length < timeAndRandom; length++) {
    const shorten = cutAt(length)
    if (new Set(ids.map(shorten)).size === ids.length) return shorten
  }
  return (id) => id
}
