import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, createAnswer, toResultAnswer } from '../wire/answer.ts'

/** Structured content is either whole or useless: it may be this many times the limit of text. */
const structuredFactor = 16

/** What the caller gets: the answer as it came, or visibly cut where it is more than a caller can take. */
export function finishResult(answer: Answer, limit: number): Answer {
  if (answer.bytes.length <= limit) return answer
  if (answer.kind === 'error') return toShortError(answer, limit)
  const structured = answer.members().find(({ key }) => key === 'structuredContent')
  const bytes = structured ? structured.end - structured.start : 0
  if (bytes > limit * structuredFactor) return toResultAnswer(tooLarge(bytes, limit * structuredFactor))
  const result = answer.value()
  const cut = Array.isArray(result.content) ? cutTexts(result.content, limit) : undefined
  return cut ? toResultAnswer({ ...result, content: cut }) : answer
}

/** Undefined when nothing had to be cut: pictures and sound are not text, and half of one is nothing. */
function cutTexts(content: readonly JsonValue[], limit: number): JsonValue[] | undefined {
  const total = content.reduce<number>((sum, item) => sum + (textOf(item)?.length ?? 0), 0)
  if (total <= limit) return undefined
  let left = limit
  return content.flatMap((item) => {
    const text = textOf(item)
    if (text === undefined) return [item]
    const room = left
    left -= Math.min(room, text.length)
    if (text.length < room) return [item]
    // All text behind the cut is left out: one mark for each piece of it could take more room than the pieces.
    return room === 0 ? [] : [withText(item, `${wholeCharacters(text, room)}\n${cutMark(limit, total)}`)]
  })
}

/** The text of a content item, or of the resource that it carries. */
function textOf(item: JsonValue): string | undefined {
  if (!isObject(item)) return undefined
  const holder = item.type === 'resource' ? item.resource : item
  return isObject(holder) && typeof holder.text === 'string' ? holder.text : undefined
}

function withText(item: JsonValue, text: string): JsonValue {
  if (!isObject(item)) return item
  return item.type === 'resource' && isObject(item.resource)
    ? { ...item, resource: { ...item.resource, text } }
    : { ...item, text }
}

function cutMark(shown: number, total: number): string {
  return `[cut by Sallyport: ${shown} of ${total} characters]`
}

/** Never half of a surrogate pair. */
function wholeCharacters(text: string, length: number): string {
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length)
}

function tooLarge(bytes: number, limit: number): JsonObject {
  const text = `The result has ${bytes} bytes of structured content, more than the ${limit} that may pass. Ask the tool for less.`
  return { content: [{ type: 'text', text }], isError: true }
}

/** An error is for people to read: what does not fit into the limit is cut, and further data left out. */
function toShortError(answer: Answer, limit: number): Answer {
  const { code, message } = answer.value()
  const text = typeof message === 'string' ? message : ''
  const mark = text.length > limit ? `\n${cutMark(limit, text.length)}` : ''
  const short = { code: typeof code === 'number' ? code : -32603, message: wholeCharacters(text, limit) + mark }
  return createAnswer('error', Buffer.from(JSON.stringify(short)))
}
