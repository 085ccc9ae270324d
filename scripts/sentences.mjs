// Draws comments and messages at random, for a check of their English: a reader who sees only the sentence says what it means.
// node scripts/sentences.mjs [--seed 1] [--count 40]
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { values } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '40' } },
})
const random = createRandom(Number(values.seed))
const sentences = await collect()
for (let drawn = 0; drawn < Number(values.count) && sentences.length > 0; drawn++) {
  const [sentence] = sentences.splice(Math.floor(random() * sentences.length), 1)
  console.log(`${drawn + 1}. ${sentence.text}\n   ${sentence.file}`)
}

async function collect() {
  const found = []
  for (const folder of ['src', 'web/src']) {
    const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true })
    const files = entries.filter(
      (entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/migrations$/.test(entry.parentPath),
    )
    for (const entry of files.toSorted((a, b) => (join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1))) {
      const path = join(entry.parentPath, entry.name)
      const text = await readFile(path, 'utf8')
      for (const sentence of sentencesIn(text)) found.push({ text: sentence, file: relative(root, path) })
    }
  }
  return found
}

/** Comments, and texts of at least four words in quotes. */
function* sentencesIn(text) {
  for (const [, comment = ''] of text.matchAll(/\/\*\*([\s\S]*?)\*\//g))
    yield comment.replace(/\s*\n\s*\*\s?/g, ' ').trim()
  for (const [, comment = ''] of text.matchAll(/(?:^|\s)\/\/ (.*)$/gm)) yield comment.trim()
  for (const [, , words = ''] of text.matchAll(/(['`])((?:(?!\1)[^\\\n])*)\1/g)) {
    if (words.split(' ').length >= 4 && !/[<>]|className|=>|^[a-z-]+(?: [a-z-]+[[\]0-9:-]+)+/.test(words))
      yield words.trim()
  }
}

/** mulberry32: the same seed always draws the same sentences. */
function createRandom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
