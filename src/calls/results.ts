import { errorTable } from '../contract/errors.ts'
import type { JsonObject, JsonValue } from '../contract/json.ts'
import type { CallMethod } from '../contract/permit.ts'
import { isObject } from '../lib/json.ts'
import { wholeEnd } from '../lib/text.ts'
import { countOf } from '../shared/words.ts'
import { type Answer, createAnswer, toResultAnswer } from '../wire/answer.ts'

/** Images and structured content cannot be cut, so their limit is this many times the limit of text. */
const uncuttableFactor = 16

export type Finishing = {
  /** Most characters of text in one result. */
  readonly limit: number
  /** Stores the complete text for its caller. `readOn` returns a sentence about how to read the rest from an offset. */
  keep(form: 'text' | 'json', whole: string): Promise<Kept>
}

export type Kept = { readonly handle?: string; readOn(offset: number): string }

/** True for nearly all answers; they are passed on without parsing. */
export function fits(answer: Answer, limit: number): boolean {
  return answer.bytes.length <= limit
}

/** The answer for the caller: unchanged, or cut with a mark if it is too large. */
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

/** Where a kind of result contains its parts, and where a part contains its text. */
type List = {
  readonly key: string
  holderOf(item: JsonObject): JsonObject | undefined
  withHolder(item: JsonObject, holder: JsonObject): JsonObject
  /** A part with a note, in place of parts that were left out. */
  toNote(item: JsonObject, text: string): JsonObject
}

/** The text is in the content item, or in the resource that the item contains. */
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
    note = `[left out by Sallyport: ${toNames(parts)}, ${json.length} characters as JSON, the limit is ${limit * uncuttableFactor}]\n[${kept.readOn(0)}]`
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
    // All text after the cut is left out. One mark for each part could be longer than the parts.
    if (marked) return []
    marked = true
    return [withText(list, item, `${text.slice(0, Math.max(0, cut.at - from))}\n${cut.mark}`)]
  })
}

/** Parts without text that exceed the limit for such parts. Smaller parts after them may still fit. */
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
  return `${countOf(parts.length, 'part')} (${[...new Set(names)].slice(0, 5).join(', ')})`
}

/** The replacement has `isError`, so that clients do not check it against the output schema of the tool. */
async function tooLarge(answer: Answer, bytes: number, { limit, keep }: Finishing): Promise<Answer> {
  const whole = answer.bytes.toString('utf8')
  const kept = await keep('json', whole)
  const text = `result-too-large: The result has ${bytes} bytes of structured content; the limit is ${limit * uncuttableFactor}. Call the tool with arguments that return less.\n[${kept.readOn(0)}]`
  return toResultAnswer({
    content: [{ type: 'text', text }],
    isError: true,
    _meta: {
      'sallyport/error': { code: 'result-too-large' },
      'sallyport/left-out': { total: whole.length, ...(kept.handle && { handle: kept.handle }) },
    },
  })
}

/** Replaces an answer that exceeds the buffer limit of its principal. It is short, so it is not counted. */
export function toDropped({ bytes }: Answer, method: CallMethod): Answer {
  const problem = `limit-exceeded: The call was made, but its answer of ${bytes.length} bytes was dropped, because earlier answers have not been read. Read them before you make further calls.`
  const { rpc } = errorTable['limit-exceeded']
  if (method !== 'tools/call')
    return createAnswer('error', Buffer.from(JSON.stringify({ code: rpc, message: problem })))
  return toResultAnswer({
    content: [{ type: 'text', text: problem }],
    isError: true,
    _meta: { 'sallyport/error': { code: 'limit-exceeded' } },
  })
}

/** Cuts the message of an error to the limit and leaves out its data. */
function toShortError(answer: Answer, limit: number): Answer {
  const { code, message } = answer.value()
  const text = typeof message === 'string' ? message : ''
  const end = wholeEnd(text, 0, limit)
  const mark = text.length > end ? `\n[cut by Sallyport: ${end} of ${text.length} characters]` : ''
  const short = { code: typeof code === 'number' ? code : -32603, message: text.slice(0, end) + mark }
  return createAnswer('error', Buffer.from(JSON.stringify(short)))
}
