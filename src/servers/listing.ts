import { GatewayError } from '../contract/errors.ts'
import type { JsonValue } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import { JsonError, scanArray } from '../lib/json.ts'
import { type Answer, memberText } from '../wire/answer.ts'
import { errorFacts } from '../wire/legacy.ts'
import type { Link } from './link.ts'

/** What a server lists, each item as its own JSON. `incomplete` says why it is not all of it. */
export type RawList = { readonly items: readonly Buffer[]; readonly incomplete: string | undefined }

export type ListLimits = { readonly pages: number; readonly items: number; readonly bytes: number }

/** Milliseconds for each page, and for all of them: who is late with the last one is cut there. */
export type ListOptions = { readonly signal: AbortSignal; readonly timeoutMs: number; readonly clock: Clock }

/** Reads a list page by page. A server that never ends it is cut, and the cut is told. */
export async function readTools(link: Link, limits: ListLimits, { clock, ...options }: ListOptions): Promise<RawList> {
  if (link.facts.capabilities.tools === undefined) return { items: [], incomplete: undefined }
  const items: Buffer[] = []
  const cut = (incomplete: string): RawList => ({ items, incomplete })
  const seen = new Set<string>()
  const started = clock.monotonic()
  let cursor: string | undefined
  let bytes = 0
  for (let page = 1; page <= limits.pages; page++) {
    if (clock.monotonic() - started > options.timeoutMs) return cut(`more than ${options.timeoutMs} ms can list`)
    const answer = await link.request('tools/list', cursor === undefined ? {} : { cursor }, { ...options, deep: true })
    if (answer.kind === 'error')
      throw new GatewayError('server-refused', 'The server refused to list its tools', errorFacts(answer))
    bytes += answer.bytes.length
    const found = toItems(answer)
    const room = limits.items - items.length
    for (const item of found.slice(0, room)) items.push(item)
    if (found.length > room) return cut(`more than ${limits.items} tools`)
    // An empty cursor is a cursor: only a missing one ends the list.
    const next = nextCursor(answer)
    if (next === undefined || next === null) return { items, incomplete: undefined }
    if (typeof next !== 'string') return cut('a next page that nobody can ask for')
    if (found.length === room) return cut(`more than ${limits.items} tools`)
    if (bytes >= limits.bytes) return cut(`more than ${limits.bytes} bytes`)
    if (seen.has(next)) return cut('the same page again and again')
    seen.add(next)
    cursor = next
  }
  return cut(`more than ${limits.pages} pages`)
}

/** One item at a time: a single one that is nested too deep must not take the list with it. */
function toItems(answer: Answer): Buffer[] {
  const member = answer.members().find(({ key }) => key === 'tools')
  if (!member) throw new GatewayError('server-broken', 'The list of tools is missing')
  try {
    return scanArray(answer.bytes.subarray(member.start, member.end))
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new GatewayError('server-broken', 'The list of tools is not a list', {}, { cause: error })
  }
}

function nextCursor(answer: Answer): JsonValue | undefined {
  const text = memberText(answer, 'nextCursor')
  return text === undefined ? undefined : JSON.parse(text)
}
