import { errorTable } from '../contract/errors.ts'
import type { JsonObject, JsonValue } from '../contract/json.ts'
import type { CallMethod } from '../contract/permit.ts'
import { isObject } from '../lib/json.ts'
import { wholeEnd } from '../lib/text.ts'
import { type Answer, createAnswer, toResultAnswer } from '../wire/answer.ts'

/** Half a picture is nothing, and neither is half of a structure: these may be as many times the limit of text. */
const uncuttableFactor = 16

export type Finishing = {
  /** Characters of text that a caller gets at once. */
  readonly limit: number
  /** Keeps the whole for its caller; the sentence says how to read it from a place on, or that it was not kept. */
  keep(form: 'text' | 'json', whole: string): Promise<Kept>
}

export type Kept = { readonly handle?: string; readOn(offset: number): string }

/** Nearly all answers do, and pass as the bytes they came as. */
export function fits(answer: Answer, limit: number): boolean {
  return answer.bytes.length <= limit
}

/** What the caller gets: the answer as it came, or visibly less where it is more than a caller can take. */
export async function finishResult(answer: Answer, finishing: Finishing): Promise<Answer> {
  const { limit } = finishing
  if (fits(answer, limit)) return answer
  if (answer.kind === 'error') return toShortError(answer, limit)
  const structured = answer.members().find(({ key }) => key === 'structuredContent')
  const bytes = structured ? structured.end - structured.start : 0
  if (bytes > limit * uncuttableFactor) return tooLarge(answer, bytes, finishing)
  const result = answer.value()
  const list = lists.find(({ key }) => Array.isArray(result[key]))
  const items = list && result[list.key]
  return list && Array.isArray(items) ? shorten(answer, list, items, finishing) : answer
}

/** Where each kind of result has its parts, and where a part has its text. */
type List = {
  readonly key: string
  holderOf(item: JsonObject): JsonObject | undefined
  withHolder(item: JsonObject, holder: JsonObject): JsonObject
  /** A part that says what was left out in its place. */
  toNote(item: JsonObject, text: string): JsonObject
}

/** The text of a content item, or of the resource that it carries. */
const contents = {
  holderOf(item: JsonObject): JsonObject | undefined {
    const holder = item.type === 'resource' ? item.resource : item
    return isObject(holder) ? holder : undefined
  },
  withHolder: (item: JsonObject, holder: JsonObject): JsonObject =>
    item.type === 'resource' ? { ...item, resource: holder } : holder,
}

const lists: readonly List[] = [
  { key: 'content', ...contents, toNote: (_item, text) => ({ type: 'text', text }) },
  {
    key: 'contents',
    holderOf: (item) => item,
    withHolder: (_item, holder) => holder,
    toNote: ({ uri }, text) => ({ uri: uri ?? '', mimeType: 'text/plain', text }),
  },
  {
    key: 'messages',
    holderOf: ({ content }) => (isObject(content) ? contents.holderOf(content) : undefined),
    withHolder: (item, holder) => ({
      ...item,
      content: isObject(item.content) ? contents.withHolder(item.content, holder) : holder,
    }),
    toNote: (item, text) => ({ ...item, content: { type: 'text', text } }),
  },
]

async function shorten(answer: Answer, list: List, items: readonly JsonValue[], finishing: Finishing): Promise<Answer> {
  const { limit, keep } = finishing
  const texts = items.map((item) => textOf(list, item))
  const whole = texts.filter((text) => text !== undefined).join('\n')
  const large = findLarge(list, items, limit * uncuttableFactor)
  if (whole.length <= limit && large.size === 0) return answer
  const meta: Record<string, JsonValue> = {}

  let cut: Cut | undefined
  if (whole.length > limit) {
    const at = wholeEnd(whole, 0, limit)
    const kept = await keep('text', whole)
    meta['sallyport/cut'] = { offset: at, total: whole.length, ...(kept.handle && { handle: kept.handle }) }
    cut = { at, mark: `[cut by Sallyport: ${at} of ${whole.length} characters]\n[${kept.readOn(at)}]` }
  }
  let note = ''
  if (large.size > 0) {
    const parts = items.filter((item) => large.has(item))
    const json = JSON.stringify(parts)
    const kept = await keep('json', json)
    meta['sallyport/left-out'] = {
      parts: parts.length,
      total: json.length,
      ...(kept.handle && { handle: kept.handle }),
    }
    note = `[left out by Sallyport: ${toNames(parts)}, ${json.length} characters as JSON, more than the ${limit * uncuttableFactor} that may pass]\n[${kept.readOn(0)}]`
  }
  const result = answer.value()
  const _meta = { ...(isObject(result._meta) && result._meta), ...meta }
  return toResultAnswer({ ...result, [list.key]: toShown(list, items, { cut, large, note }), _meta })
}

type Cut = { readonly at: number; readonly mark: string }

function toShown(
  list: List,
  items: readonly JsonValue[],
  how: { cut: Cut | undefined; large: ReadonlySet<JsonValue>; note: string },
): JsonValue[] {
  const { cut, large } = how
  let { note } = how
  let start = 0
  let marked = false
  return items.flatMap((item) => {
    if (large.has(item) && isObject(item)) {
      const said = note === '' ? [] : [list.toNote(item, note)]
      note = ''
      return said
    }
    const text = textOf(list, item)
    if (text === undefined || !cut) return [item]
    const from = start
    start += text.length + 1
    if (from + text.length < cut.at) return [item]
    // All text behind the cut is left out: one mark for each piece of it could take more room than the pieces.
    if (marked) return []
    marked = true
    return [withText(list, item, `${text.slice(0, Math.max(0, cut.at - from))}\n${cut.mark}`)]
  })
}

/** Parts without text that do not fit into the room for such parts; smaller ones behind them may. */
function findLarge(list: List, items: readonly JsonValue[], room: number): Set<JsonValue> {
  const large = new Set<JsonValue>()
  let left = room
  for (const item of items) {
    if (!isObject(item) || textOf(list, item) !== undefined) continue
    const size = JSON.stringify(item).length
    if (size > left) large.add(item)
    else left -= size
  }
  return large
}

function textOf(list: List, item: JsonValue): string | undefined {
  const holder = isObject(item) ? list.holderOf(item) : undefined
  return typeof holder?.text === 'string' ? holder.text : undefined
}

function withText(list: List, item: JsonValue, text: string): JsonValue {
  const holder = isObject(item) ? list.holderOf(item) : undefined
  return isObject(item) && holder ? list.withHolder(item, { ...holder, text }) : item
}

function toNames(parts: readonly JsonValue[]): string {
  const names = parts.map((part) => {
    const { type = 'resource', content } = isObject(part) ? part : {}
    return String(isObject(content) ? (content.type ?? type) : type).slice(0, 40)
  })
  return `${parts.length} part${parts.length === 1 ? '' : 's'} (${[...new Set(names)].slice(0, 5).join(', ')})`
}

/** What is said instead of the tool is a failure, so that no client checks it against the tool's output schema. */
async function tooLarge(answer: Answer, bytes: number, { limit, keep }: Finishing): Promise<Answer> {
  const whole = answer.bytes.toString('utf8')
  const kept = await keep('json', whole)
  const text = `result-too-large: The result has ${bytes} bytes of structured content, more than the ${limit * uncuttableFactor} that may pass. Ask the tool for less.\n[${kept.readOn(0)}]`
  return toResultAnswer({
    content: [{ type: 'text', text }],
    isError: true,
    _meta: {
      'sallyport/error': { code: 'result-too-large' },
      'sallyport/left-out': { total: whole.length, ...(kept.handle && { handle: kept.handle }) },
    },
  })
}

/** In place of an answer for which there is no memory. It is short, so that it needs none. */
export function toUnread({ bytes }: Answer, method: CallMethod): Answer {
  const problem = `limit-exceeded: The call was made, but its answer of ${bytes.length} bytes was dropped: earlier answers have not been read yet. Read them before you make further calls.`
  const { rpc } = errorTable['limit-exceeded']
  if (method !== 'tools/call')
    return createAnswer('error', Buffer.from(JSON.stringify({ code: rpc, message: problem })))
  return toResultAnswer({
    content: [{ type: 'text', text: problem }],
    isError: true,
    _meta: { 'sallyport/error': { code: 'limit-exceeded' } },
  })
}

/** An error is for people to read: what does not fit into the limit is cut, and further data left out. */
function toShortError(answer: Answer, limit: number): Answer {
  const { code, message } = answer.value()
  const text = typeof message === 'string' ? message : ''
  const end = wholeEnd(text, 0, limit)
  const mark = text.length > end ? `\n[cut by Sallyport: ${end} of ${text.length} characters]` : ''
  const short = { code: typeof code === 'number' ? code : -32603, message: text.slice(0, end) + mark }
  return createAnswer('error', Buffer.from(JSON.stringify(short)))
}
