import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { JsonValue } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import { JsonError, scanArray } from '../lib/json.ts'
import { type Answer, memberText } from '../wire/answer.ts'
import { errorFacts } from '../wire/legacy.ts'
import type { Link } from './link.ts'

/** The kinds of lists that a server can offer. */
export type ListKind = 'tools' | 'resources' | 'templates' | 'prompts'

type ListEntry = {
  readonly method: string
  /** The member of the answer that contains the items. */
  readonly member: string
  /** The list is only requested if the server declares this capability. */
  readonly capability: string
  /** The notification that a server sends when the list has changed. */
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

/** The items of a list, each as JSON text. `incomplete` is the reason why items are missing. */
export type RawList = { readonly items: readonly Buffer[]; readonly incomplete: string | undefined }

export type RawLists = Readonly<Record<ListKind, RawList>>

export type ListLimits = { readonly pages: number; readonly items: number; readonly bytes: number }

/** `timeoutMs` applies to each page and to the whole list. */
export type ListOptions = { readonly signal: AbortSignal; readonly timeoutMs: number; readonly clock: Clock }

export const noList: RawList = { items: [], incomplete: undefined }
export const noLists: RawLists = { tools: noList, resources: noList, templates: noList, prompts: noList }

/** Reads the wanted lists and copies the others from `known`. */
export async function readLists(
  link: Link,
  wanted: { readonly kinds: readonly ListKind[]; readonly known: RawLists },
  limits: ListLimits,
  options: ListOptions,
): Promise<RawLists> {
  const lists = { ...wanted.known }
  const read = wanted.kinds.map(async (kind) => {
    lists[kind] = await readList(link, kind, limits, options).catch((error: unknown) =>
      toUnreadList(kind, options, error),
    )
  })
  await Promise.all(read)
  return lists
}

/** A server without its tools is useless, so that error is thrown. Any other list is marked as incomplete. */
function toUnreadList(kind: ListKind, { signal }: ListOptions, error: unknown): RawList {
  if (kind === 'tools' || signal.aborted) throw error
  return { items: [], incomplete: `the list of ${kind} could not be read: ${toGatewayError(error).code}` }
}

/** Reads a list page by page, up to the limits. `incomplete` names the limit that was reached. */
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
    if (clock.monotonic() - started > options.timeoutMs)
      return cut(`not listed completely within ${options.timeoutMs} ms`)
    const answer = await link.request(method, cursor === undefined ? {} : { cursor }, { ...options, deep: true })
    if (answer.kind === 'error') return refused(kind, answer)
    bytes += answer.bytes.length
    const found = toItems(answer, member)
    const room = limits.items - items.length
    for (const item of found.slice(0, room)) items.push(item)
    if (found.length > room) return cut(`more than ${limits.items} ${kind}`)
    // Only a missing cursor ends the list. An empty string is a valid cursor.
    const next = nextCursor(answer)
    if (next === undefined || next === null) return { items, incomplete: undefined }
    if (typeof next !== 'string') return cut('nextCursor is not a string')
    if (found.length === room) return cut(`more than ${limits.items} ${kind}`)
    if (bytes >= limits.bytes) return cut(`more than ${limits.bytes} bytes`)
    if (seen.has(next)) return cut('nextCursor was repeated')
    seen.add(next)
    cursor = next
  }
  return cut(`more than ${limits.pages} pages`)
}

/** Many servers declare resources or prompts and then refuse to list them: such a list is empty. */
function refused(kind: ListKind, answer: Answer): RawList {
  if (kind === 'tools') {
    throw new GatewayError('server-refused', 'The server refused to list its tools', errorFacts(answer))
  }
  return noList
}

/** Splits the list without parsing the items, so that one item that is nested too deeply does not fail the whole list. */
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
