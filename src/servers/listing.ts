import { GatewayError } from '../contract/errors.ts'
import { JsonError, scanArray } from '../lib/json.ts'
import { type Answer, memberText } from '../wire/answer.ts'
import { errorFacts } from '../wire/legacy.ts'
import type { Link } from './link.ts'

/** What a server lists, each item as its own JSON. `incomplete` says why it is not all of it. */
export type RawList = { readonly items: readonly Buffer[]; readonly incomplete: string | undefined }

export type ListLimits = { readonly pages: number; readonly items: number; readonly bytes: number }

/** Reads a list page by page. A server that never ends it is cut, and the cut is told. */
export async function readTools(
  link: Link,
  limits: ListLimits,
  options: { signal: AbortSignal; timeoutMs: number },
): Promise<RawList> {
  if (link.facts.capabilities.tools === undefined) return { items: [], incomplete: undefined }
  const items: Buffer[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  let bytes = 0
  for (let page = 1; page <= limits.pages; page++) {
    const answer = await link.request('tools/list', cursor === undefined ? {} : { cursor }, { ...options, deep: true })
    if (answer.kind === 'error')
      throw new GatewayError('server-refused', 'The server refused to list its tools', errorFacts(answer))
    bytes += answer.bytes.length
    items.push(...toItems(answer).slice(0, limits.items - items.length))
    // An empty cursor is a cursor: only a missing one ends the list.
    const nextCursor = toCursor(answer)
    if (nextCursor === undefined) return { items, incomplete: undefined }
    if (items.length >= limits.items) return { items, incomplete: `more than ${limits.items} tools` }
    if (bytes >= limits.bytes) return { items, incomplete: `more than ${limits.bytes} bytes` }
    if (seen.has(nextCursor)) return { items, incomplete: 'the same page again and again' }
    seen.add(nextCursor)
    cursor = nextCursor
  }
  return { items, incomplete: `more than ${limits.pages} pages` }
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

function toCursor(answer: Answer): string | undefined {
  const text = memberText(answer, 'nextCursor')
  const value: unknown = text === undefined ? undefined : JSON.parse(text)
  return typeof value === 'string' ? value : undefined
}
