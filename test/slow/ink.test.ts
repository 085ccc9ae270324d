import { describe, expect, it } from 'vitest'
import { findMarks } from '../../src/shared/marks.ts'
import { findChromium, launch, openWindow } from '../web/browser.ts'

/** Letters and symbols that fonts of this machine may lack are drawn as a box, which is ink too. */
const drawBlank = `(texts, without) => {
  const size = 32
  const columns = 64
  const canvas = document.createElement('canvas')
  canvas.width = size * columns
  canvas.height = size
  const context = canvas.getContext('2d', { willReadFrequently: true })
  context.font = '16px sans-serif'
  const ink = (row) => {
    context.clearRect(0, 0, canvas.width, size)
    row.forEach((text, column) => context.fillText(text, column * size + 8, 22))
    const { data } = context.getImageData(0, 0, canvas.width, size)
    const sums = new Array(row.length).fill(0)
    for (let pixel = 3; pixel < data.length; pixel += 4) {
      const column = Math.floor(((pixel >> 2) % canvas.width) / size)
      if (column < sums.length) sums[column] += data[pixel]
    }
    return sums
  }
  const bare = without === '' ? 0 : ink([without])[0]
  const blank = []
  for (let from = 0; from < texts.length; from += columns) {
    const row = texts.slice(from, from + columns)
    ink(row).forEach((sum, column) => sum === bare && blank.push(row[column]))
  }
  return blank
}`

function* codePoints(pattern: RegExp): Generator<string> {
  for (let code = 0; code <= 0x10ffff; code++) {
    const character = String.fromCodePoint(code)
    if (pattern.test(character)) yield character
  }
}

describe.runIf(findChromium() !== undefined)('what a browser draws', () => {
  it('is ink for every character without a mark, alone or on a letter', async () => {
    const browser = await launch()
    try {
      await using window = await openWindow(browser)
      const blankOf = async (texts: string[], without: string): Promise<string[]> =>
        JSON.parse(
          String(await window.page.evaluate(`JSON.stringify((${drawBlank})(${JSON.stringify(texts)}, '${without}'))`)),
        )
      // Ideographs and syllables of these scripts are many and all alike in having ink.
      const many =
        /[\p{Script=Han}\p{Script=Tangut}\p{Script=Hangul}\p{Script=Egyptian_Hieroglyphs}\p{Script=Cuneiform}]/u
      const alone = [...codePoints(/[\p{L}\p{N}\p{P}\p{S}]/u)].filter((each) => !many.test(each))
      const unmarked = alone.filter((each) => findMarks(each).length === 0)
      expect(unmarked.length).toBeGreaterThan(20_000)
      const hex = (texts: string[]) => texts.map((text) => text.codePointAt(text.length > 2 ? 1 : 0)?.toString(16))
      expect(hex(await blankOf(unmarked, ''))).toEqual([])

      const accented = [...codePoints(/\p{M}/u)].map((each) => `o${each}`)
      const without = accented.filter((each) => findMarks(each).length === 0)
      expect(without.length).toBeGreaterThan(200)
      expect((await blankOf(without, 'o')).map((text) => text.codePointAt(1)?.toString(16))).toEqual([])
      // The measure itself: a character that is marked for having no ink is found blank.
      expect(await blankOf(['\u200b', 'x'], '')).toEqual(['\u200b'])
    } finally {
      await browser.close()
    }
  })
})
