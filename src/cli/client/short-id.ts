import { GatewayError } from '../../contract/errors.ts'

type Listed = { readonly items: readonly { readonly id: string }[]; readonly next?: string | null }

export type IdSource = {
  /** What the ids name, in the plural, for the error. */
  readonly noun: string
  /** The part before `_` of ids that begin with their time. Without it every page is read. */
  readonly kind?: string
  /** Newest first. */
  list(cursor: string | undefined): Promise<Listed>
}

const timeAndRandom = 19
const mostPages = 50
const mostShown = 10

/** The one id that begins with `given`. Several are an error; where there is none, the gateway says so. */
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
  const message = `${given} is the beginning of ${found.length} ${noun}: ${found.slice(0, mostShown).join(', ')}${more}`
  throw new GatewayError('request-invalid', `${message}. Give more characters of the id`, { matches: found })
}

function isShort(given: string, kind: string): boolean {
  const start = `${kind}_`
  return given.startsWith(start) && given.length > start.length && given.length < start.length + timeAndRandom
}

const shortest = 12

/** Ids for a terminal, as short as they can be among the listed ones. A program that reads the output gets them whole. */
export function shorteningIds(ids: readonly string[], width: number | undefined): (id: string) => string {
  if (width === undefined) return (id) => id
  const cutAt = (length: number) => (id: string) => id.slice(0, id.indexOf('_') + 1 + length)
  for (let length = shortest; length < timeAndRandom; length++) {
    const shorten = cutAt(length)
    if (new Set(ids.map(shorten)).size === ids.length) return shorten
  }
  return (id) => id
}
