/** Matches whole emoji sequences of the Unicode standard. V8 needs 0.1 ms for each test, so `answers` caches the results. */
const standardEmoji = /^\p{RGI_Emoji}$/v
/** An emoji with a text presentation selector (U+FE0E) after it. */
const textForm = /^[\p{Emoji}--[#*0-9]]\ufe0e$/v

const answers = new Map<string, boolean>()
const mostAnswers = 2000
/** A text with more unknown sequences than this is treated as an attack: its joiners are marked without a further test. */
const mostUnknown = 500

const selector = 0xfe0f
const textSelector = 0xfe0e
const joiner = 0x200d
const keycap = 0x20e3
const longest = 40

/**
 * The end of the emoji that begins at `from`, if invisible characters are a part of it; else `from`. `state` counts the
 * sequences of one text that are not emoji.
 */
export function emojiEnd(text: string, from: number, state: { unknownEmoji: number }): number {
  const first = text.codePointAt(from) ?? 0
  const second = from + (first > 0xffff ? 2 : 1)
  if (!continues(text.codePointAt(second))) return from
  const end = sequenceEnd(text, second)
  if (isEmoji(text.slice(from, end), state)) return end
  // A sequence that is not an emoji may begin with an emoji, for example an emoji with an extra joiner.
  const short = text.codePointAt(second) === joiner ? from : second + unitsAt(text, second)
  return short > from && short < end && isEmoji(text.slice(from, short), state) ? short : from
}

/** Variation selectors, the joiner, skin tones and tags follow the first code point of a sequence. */
function continues(code: number | undefined): boolean {
  if (code === undefined) return false
  return code === selector || code === textSelector || code === joiner || isSkinTone(code) || isTag(code)
}

function sequenceEnd(text: string, second: number): number {
  let at = second
  while (at < text.length && at - second < longest) {
    const code = text.codePointAt(at) ?? 0
    if (code === joiner) at += 1 + unitsAt(text, at + 1)
    else if (continues(code) || code === keycap) at += unitsAt(text, at)
    else break
  }
  return Math.min(at, text.length)
}

function unitsAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
}

function isSkinTone(code: number): boolean {
  return code >= 0x1f3fb && code <= 0x1f3ff
}

function isTag(code: number): boolean {
  return code >= 0xe0020 && code <= 0xe007f
}

function isEmoji(sequence: string, state: { unknownEmoji: number }): boolean {
  const known = answers.get(sequence)
  if (known !== undefined) return known
  if (state.unknownEmoji >= mostUnknown) return false
  const answer = textForm.test(sequence) || standardEmoji.test(sequence)
  if (!answer) state.unknownEmoji += 1
  if (answers.size >= mostAnswers) answers.clear()
  answers.set(sequence, answer)
  return answer
}
