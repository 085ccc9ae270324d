/** What an echo server answers with: the caller's own mark, then text until the wanted size is reached. */
export const nonceLength = 16

/** As it stands in JSON. Quotes, line ends and letters beyond ASCII are what real results are full of. */
const sentence = 'The quick brown fox said \\"jump\\" and leapt over the lazy dög, twice a day.\\n'
const sentenceBytes = Buffer.byteLength(sentence)
const made = new Map<number, Buffer>()

/** The rest of a text of `size` bytes behind the mark, as it stands in JSON; made once for each size. */
export function fillerFor(size: number): Buffer {
  const known = made.get(size)
  if (known) return known
  const room = Math.max(0, size - nonceLength)
  const whole = sentence.repeat(Math.floor(room / sentenceBytes))
  const filler = Buffer.from(whole + '.'.repeat(room - Buffer.byteLength(whole)))
  made.set(size, filler)
  return filler
}
