import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { JsonValue } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import { JsonError, scanArray } from '../lib/json.ts'
import { type Answer, memberText } from '../wire/answer.ts'
import { errorFacts } from '../wire/legacy.ts'
import type { Link } from './link.ts'

/** What servers offer lists of. */
export type ListKind = 'tools' | 'resources' | 'templates' | 'prompts'

type ListEntry = {
  readonly method: string
  /** Where the items stand in the answer, and the capability without which nobody asks. */
  readonly member: string
  readonly capability: string
  /** What a server sends when the list is no longer what it was. */
  readonly changed: string
}

export const listTable: Readonly<Record<ListKind, ListEntry>> = {
  tools: { method: 'tools/list', member: 'tools', capability: 'tools', changed: 'notifications/tools/list_changed' },
  resources: {
    method: 'resources/list',
    member: 'resources',
    capability: 'resources',
    changed: 'notifications/resources/list_changed',
  },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    capability: 'resources',
    changed: 'notifications/resources/list_changed',
  },
  prompts: {
    method: 'prompts/list',
    member: 'prompts',
    capability: 'prompts',
    changed: 'notifications/prompts/list_changed',
  },
}

export const listKinds: readonly ListKind[] = ['tools', 'resources', 'templates', 'prompts']

/** What a server lists, each item as its own JSON. `incomplete` says why it is not all of it. */
export type RawList = { readonly items: readonly Buffer[]; readonly incomplete: string | undefined }

export type RawLists = Readonly<Record<ListKind, RawList>>

export type ListLimits = { readonly pages: number; readonly items: number; readonly bytes: number }

/** Milliseconds for each page, and for all of them: who is late with the last one is cut there. */
export type ListOptions = { readonly signal: AbortSignal; readonly timeoutMs: number; readonly clock: Clock }

export const noList: RawList = { items: [], incomplete: undefined }
export const noLists: RawLists = { tools: noList, resources: noList, templates: noList, prompts: noList }

/** Some lists, read anew, with the others as they were. */
export async function readLists(
  link: Link,
  wanted: { readonly kinds: readonly ListKind[]; readonly known: RawLists },
  limits: ListLimits,
  options: ListOptions,
): Promise<RawLists> {
  const lists = { ...wanted.known }
  const read = wanted.kinds.map(async (kind) => {
    lists[kind] = await readList(link, kind, limits, options).catch((error: unknown) => unread(kind, options, error))
  })
  await Promise.all(read)
  return lists
}

/** Tools are what a server is for. Another list that cannot be read must not take them along, nor pass for complete. */
function unread(kind: ListKind, { signal }: ListOptions, error: unknown): RawList {
  if (kind === 'tools' || signal.aborted) throw error
  return { items: [], incomplete: `the list of ${kind} could not be read: ${toGatewayError(error).code}` }
}

/** Reads a list page by page. A server that never ends it is cut, and the cut is told. */
async function readList(
  link: Link,
  kind: ListKind,
  limits: ListLimits,
  { clock, ...options }: ListOptions,
): Promise<RawList> {
  const { method, member, capability } = listTable[kind]
  if (link.facts.capabilities[capability] === undefined) return noList
  const items: Buffer[] = []
  const cut = (incomplete: string): RawList => ({ items, incomplete })
  const seen = new Set<string>()
  const started = clock.monotonic()
  let cursor: string | undefined
  let bytes = 0
  for (let page = 1; page <= limits.pages; page++) {
    if (clock.monotonic() - started > options.timeoutMs) return cut(`more than ${options.timeoutMs} ms can list`)
    const answer = await link.request(method, cursor === undefined ? {} : { cursor }, { ...options, deep: true })
    if (answer.kind === 'error') return refused(kind, answer)
    bytes += answer.bytes.length
    const found = toItems(answer, member)
    const room = limits.items - items.length
    for (const item of found.slice(0, room)) items.push(item)
    if (found.length > room) return cut(`more than ${limits.items} ${kind}`)
    // An empty cursor is a cursor: only a missing one ends the list.
    const next = nextCursor(answer)
    if (next === undefined || next === null) return { items, incomplete: undefined }
    if (typeof next !== 'string') return cut('a next page that nobody can ask for')
    if (found.length === room) return cut(`more than ${limits.items} ${kind}`)
    if (bytes >= limits.bytes) return cut(`more than ${limits.bytes} bytes`)
    if (seen.has(next)) return cut('the same page again and again')
    seen.add(next)
    cursor = next
  }
  return cut(`more than ${limits.pages} pages`)
}

/** Without its tools a server is of no use. Of the other lists many say that they have them, and know them not. */
function refused(kind: ListKind, answer: Answer): RawList {
  if (kind === 'tools') {
    throw new GatewayError('server-refused', 'The server refused to list its tools', errorFacts(answer))
  }
  return noList
}

/** One item at a time: a single one that is nested too deep must not take the list with it. */
function toItems(answer: Answer, key: string): Buffer[] {
  const member = answer.members().find((candidate) => candidate.key === key)
  if (!member) throw new GatewayError('server-broken', `The list of ${key} is missing`)
  try {
    return scanArray(answer.bytes.subarray(member.start, member.end))
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new GatewayError('server-broken', `The list of ${key} is not a list`, {}, { cause: error })
  }
}

function nextCursor(answer: Answer): JsonValue | undefined {
  const text = memberText(answer, 'nextCursor')
  return text === undefined ? undefined : JSON.parse(text)
}
