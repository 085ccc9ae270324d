/** An echo server answers with the nonce of the caller, then with text up to the wanted size. */
export const nonceLength = 16

/** Escaped for JSON. Real results also contain quotes, line breaks and letters that are not ASCII. */
const sentence = 'The quick brown fox said \\"jump\\" and leapt over the lazy dög, twice a day.\\n'
const sentenceBytes = Buffer.byteLength(sentence)
const made = new Map<number, Buffer>()

/** The text after the nonce, `size` bytes in total, escaped for JSON; created once per size. */
export function fillerFor(size: number): Buffer {
  const known = made.get(size)
  if (known) return known
  const room = Math.max(0, size - nonceLength)
  const whole = sentence.repeat(Math.floor(room / sentenceBytes))
  const filler = Buffer.from(whole + '.'.repeat(room - Buffer.byteLength(whole)))
  made.set(size, filler)
  return filler
}
