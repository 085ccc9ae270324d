import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'

/** Structured content is either whole or useless: it may be this many times the limit of text. */
const structuredFactor = 16

/** What the caller gets: the answer as it came, or visibly cut where it is more than a caller can take. */
export function finishResult(answer: Answer, limit: number): Answer {
  if (answer.kind === 'error' || answer.bytes.length <= limit) return answer
  const result = answer.value()
  if (result.structuredContent !== undefined && answer.bytes.length > limit * structuredFactor) {
    return toResultAnswer(tooLarge(answer.bytes.length, limit * structuredFactor))
  }
  if (result.structuredContent !== undefined || !Array.isArray(result.content)) return answer
  const cut = cutTexts(result.content, limit)
  return cut ? toResultAnswer({ ...result, content: cut }) : answer
}

/** Undefined when nothing had to be cut: pictures and sound are not text, and half of one is nothing. */
function cutTexts(content: readonly JsonValue[], limit: number): JsonValue[] | undefined {
  let left = limit
  let changed = false
  const items = content.map((item) => {
    if (!isObject(item) || typeof item.text !== 'string') return item
    const { text } = item
    const room = left
    left = Math.max(0, left - text.length)
    if (text.length <= room) return item
    changed = true
    return { ...item, text: `${wholeCharacters(text, room)}\n[cut by Sallyport: ${room} of ${text.length} characters]` }
  })
  return changed ? items : undefined
}

/** Never half of a surrogate pair. */
function wholeCharacters(text: string, length: number): string {
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length)
}

function tooLarge(bytes: number, limit: number): JsonObject {
  const text = `The result has ${bytes} bytes, more than the ${limit} that may pass. Ask the tool for less.`
  return { content: [{ type: 'text', text }], isError: true }
}
