import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countWarnings, describeWarnings, findMarks, type MarkKind } from '../../src/shared/marks.ts'
import { toVisible, toVisibleJson } from '../../src/shared/visible.ts'

const marked = (text: string) => findMarks(text).map(({ character, kind }) => [character, kind])

describe('a character that cannot be seen is marked', () => {
  it.each<[what: string, text: string, kind: MarkKind]>([
    ['zero width space', '\u200b', 'invisible'],
    ['zero width joiner', '\u200d', 'invisible'],
    ['right-to-left override', '\u202e', 'invisible'],
    ['isolate', '\u2066', 'invisible'],
    ['Arabic letter mark', '\u061c', 'invisible'],
    ['tag', '\u{e0041}', 'invisible'],
    ['unassigned code point of the tag block', '\u{e0fff}', 'invisible'],
    ['variation selector', '\ufe0f', 'invisible'],
    ['variation selector of the supplement', '\u{e0100}', 'invisible'],
    ['musical format control', '\u{1d173}', 'invisible'],
    ['last musical format control', '\u{1d17a}', 'invisible'],
    ['musical null notehead', '\u{1d159}', 'invisible'],
    ['Hangul filler', '\u3164', 'invisible'],
    ['halfwidth Hangul filler', '\uffa0', 'invisible'],
    ['Hangul choseong filler', '\u115f', 'invisible'],
    ['Mongolian vowel separator', '\u180e', 'invisible'],
    ['Khmer inherent vowel', '\u17b4', 'invisible'],
    ['interlinear annotation', '\ufff9', 'invisible'],
    ['object replacement', '\ufffc', 'invisible'],
    ['shorthand format control', '\u{1bca0}', 'invisible'],
    ['Khitan filler', '\u{16fe4}', 'invisible'],
    ['private use', '\ue000', 'invisible'],
    ['private use of plane 16', '\u{10fffd}', 'invisible'],
    ['noncharacter', '\ufdd0', 'invisible'],
    ['noncharacter at the end of a plane', '\u{1ffff}', 'invisible'],
    ['half of a pair', '\ud83d', 'invisible'],
    ['escape', '\x1b', 'invisible'],
    ['C1 control', '\x9b', 'invisible'],
    ['carriage return alone', '\r', 'invisible'],
    ['line separator', '\u2028', 'invisible'],
    ['combining grapheme joiner', '\u034f', 'invisible'],
    ['soft hyphen', '\xad', 'invisible'],
    ['no-break space', '\xa0', 'blank'],
    ['ideographic space', '\u3000', 'blank'],
    ['thin space', '\u2009', 'blank'],
    ['braille blank', '\u2800', 'blank'],
    ['unassigned', '\u0378', 'unassigned'],
    ['enclosing keycap without its key', '\u20e3', 'stacked'],
    ['accent without a letter', '\u0301', 'stacked'],
    ['Khmer sign on a Latin letter', '\u17d2', 'stacked'],
  ])('%s', (_, character, kind) => {
    expect(marked(character)).toEqual([[character, kind]])
    expect(marked(`one, ${character} two`)).toEqual([[character, kind]])
    expect(toVisible(`x${character}`)).toMatch(kind === 'stacked' && character === '\u0301' ? /^x/ : /^x\\u\{/)
  })

  it('also behind a digit, where a selector would draw nothing and carry a bit', () => {
    expect(marked('1\ufe0f2\ufe0e3')).toHaveLength(2)
    expect(marked('😀\ufe0f')).toEqual([['\ufe0f', 'invisible']])
  })

  it('also as the fourth accent on one letter', () => {
    expect(marked('a\u0301\u0302\u0303')).toEqual([])
    expect(marked('a\u0301\u0302\u0303\u0304\u0305')).toEqual([
      ['\u0304', 'stacked'],
      ['\u0305', 'stacked'],
    ])
  })
})

describe('a letter that looks like another one is marked', () => {
  it.each([
    ['a Cyrillic letter in a Latin word', 'p\u0430ypal', '\u0430'],
    ['a Greek letter in a Latin word', 'g\u03bf\u03bfgle', '\u03bf\u03bf'],
    ['an Armenian letter in a Latin word', '\u0570ello', '\u0570'],
    ['a Cherokee letter in a Latin word', '\u13a0elete', '\u13a0'],
    ['a Myanmar letter between Latin ones', 'g\u101d\u101dgle', '\u101d\u101d'],
    [
      'a whole word of Cyrillic letters',
      'send to \u0440\u0430\u0443\u0440\u0430 now',
      '\u0440\u0430\u0443\u0440\u0430',
    ],
    [
      'a whole word of Cyrillic letters before a Latin ending',
      '\u0441\u043e\u0441\u043e.com',
      '\u0441\u043e\u0441\u043e',
    ],
    ['a whole word of Greek capitals', '\u0391\u039a\u039c', '\u0391\u039a\u039c'],
    ['mathematical letters', '\u{1d41d}\u{1d41e}\u{1d425}', '\u{1d41d}\u{1d41e}\u{1d425}'],
    ['mathematical digits', 'pay \u{1d7d7}', '\u{1d7d7}'],
    ['a phonetic letter', '\u0261oogle', '\u0261'],
    ['a small Roman numeral', 'paypa\u217c', '\u217c'],
    ['the Kelvin sign', '\u212aey', '\u212a'],
    ['a full-width letter among ASCII ones', 'paypa\uff4c', '\uff4c'],
    ['a digit of another script', 'id 1\u09ea', '\u09ea'],
    ['a sign that looks like a slash', 'github.com\u2215login', '\u2215'],
    ['a sign that looks like a colon', 'https\ua789//x', '\ua789'],
    ['a sign that looks like a full stop', 'example\u2024com', '\u2024'],
    ['a sign that looks like a semicolon', 'ls\u037e rm', '\u037e'],
    ['a letter that looks like a bar', 'paypa\u01c0', '\u01c0'],
    ['a word of small capitals', 'please \u1d05\u1d07\u029f it', '\u1d05\u1d07\u029f'],
    ['a wide slash behind a host', 'github.com\uff0flogin.example', '\uff0f'],
    ['a wide full stop in an address', 'https://github\uff0ecom/x', '\uff0e'],
    ['an ideographic full stop in an address', 'mailto:a@github\u3002com', '\u3002'],
    ['a halfwidth full stop in an address', 'https://github\uff61com', '\uff61'],
    ['a wide colon behind a scheme', 'https\uff1a//x', '\uff1a'],
    ['a wide at sign', 'admin\uff20example.com', '\uff20'],
  ])('%s', (_, text, letters) => {
    expect(marked(text)).toEqual([...letters].map((letter) => [letter, 'look-alike']))
    expect(marked(JSON.stringify({ a: `\n${text}` }))).toEqual(marked(text))
  })

  it('even where the same text goes on in that alphabet', () => {
    expect(marked('Send to \u0440\u0430\u0443\u0440\u0430 now, спасибо')).toHaveLength(5)
    expect(marked('спасибо, \u0441\u043e\u0441\u043e.com')).toHaveLength(4)
    expect(marked('{"note":"привет","to":"\u0440\u0430\u0443\u0440\u0430"}')).toHaveLength(5)
  })
})

describe('ordinary text has no mark', () => {
  it.each([
    'Příliš žluťoučký kůň, 漢字, 한국어, ไทย, עברית, العربية, हिन्दी, Tiếng Việt',
    'Удаляет файл через API-шлюз; а у нас хор, и сор',
    'Το αρχείο διαγράφεται',
    'Հայերեն տեքստ',
    '支持GET／POST。API：详细信息，HTTP/1.1：OK（见 https://example.com/文档）。file.txt：文本',
    'メールは＠を使う。A／Bテスト',
    'Tシャツ, A型, AとB, IT부서, בAPI',
    '5 μs, ΔE, 10 kΩ, λ, α = 0.05, 3 ± 1 m², 1⁄2, № 5, 25 ℃, naïve “quoted” — text…',
    'العدد ١٢٣',
    '❤️ 👩‍💻 🇩🇪 👍🏽 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ☎ ✓ → ©',
    'tabs\tand\nline ends',
    '"\\nсон и явь"',
    'C:\\new\\folder and \\u0041',
  ])('%s', (text) => {
    expect(marked(text)).toEqual([])
    expect(toVisible(text)).toBe(text)
  })
})

const everyCodePoint = function* (): Generator<string> {
  for (let code = 0; code <= 0x10ffff; code++) yield String.fromCodePoint(code)
}

describe('every code point', () => {
  it('has a mark unless it is a letter, a number, a sign of writing, a symbol, or one of a small allowed set', () => {
    const allowed = /[ \n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u
    const inked = /[\p{L}\p{N}\p{P}\p{S}]/u
    const unmarked: string[] = []
    for (const character of everyCodePoint()) {
      if (findMarks(character).length > 0 || allowed.test(character)) continue
      const isIgnored = /[\p{Default_Ignorable_Code_Point}\p{White_Space}\p{Variation_Selector}]/v.test(character)
      if (isIgnored || !inked.test(character)) unmarked.push(character.codePointAt(0)?.toString(16) ?? '')
    }
    expect(unmarked).toEqual([])
  })
})

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      ...['a', ' ', '\n', '"', '\\n', '\x1b[31m', '\u202e', '\u200b', '\u{e0041}', '\u{e0100}', '\x9b', '\x7f'],
      ...['\ud800', '\u3164', '\xa0', '❤', '\ufe0f', '1', '.', 'а', 'р', 'ж', 'ο', 'λ', '\u0301', '𝐝', '漢', '👩‍💻'],
    ),
  }),
)

/** What is left hidden, by the tables of Unicode, where emoji are taken out. */
const hides =
  /[[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}\p{Cs}\p{Co}\p{Z}\u2800]--[ \n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]]/v

describe('toVisible', () => {
  it.each([
    ['zero\u200bwidth', 'zero\\u{200b}width'],
    ['\x1b[31mred', '\\u{1b}[31mred'],
    ['back\rspace\x08\x7f', 'back\\u{d}space\\u{8}\\u{7f}'],
    ['smuggled\u{e0101}\ufe00', 'smuggled\\u{e0101}\\u{fe00}'],
    ['hard\u00a0wide\u3000thin\u2009', 'hard\\u{a0}wide\\u{3000}thin\\u{2009}'],
    ['half\ud83d', 'half\\u{d83d}'],
    ['p\u0430ypal', 'p\\u{430}ypal'],
    ['Příliš 漢字 👩 ❤\ufe0f', 'Příliš 漢字 👩 ❤\ufe0f'],
    ['❤\ufe0f\ufe0f', '❤\ufe0f\\u{fe0f}'],
    ['two\nlines\tand a tab', 'two\nlines\tand a tab'],
  ])('shows %j as %j', (text, shown) => {
    expect(toVisible(text)).toBe(shown)
  })

  it('leaves nothing hidden, changes nothing when it is applied again, and loses nothing', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = toVisible(text)
        expect(shown.replace(/\p{RGI_Emoji}/gv, '')).not.toMatch(hides)
        expect(toVisible(shown)).toBe(shown)
        const back = shown.replace(/\\u\{([0-9a-f]+)\}/g, (_, code) => String.fromCodePoint(Number.parseInt(code, 16)))
        expect(back).toBe(text)
      }),
      { numRuns: 5000 },
    )
  })

  it('keeps the meaning of a JSON document', () => {
    fc.assert(
      fc.property(fc.dictionary(anyText, anyText), (value) => {
        const json = toVisibleJson(JSON.stringify(value, null, 2))
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(json.replace(/\p{RGI_Emoji}/gv, '')).not.toMatch(hides)
      }),
    )
  })

  it('takes as many steps for a long text as its length says', () => {
    for (const unit of ['а', 'a\u0430', '\u200b', 'a\u0301', '1\ufe0f', 'ж ', '\\n', '❤\ufe0f'])
      expect(findMarks(unit.repeat(100_000)).length).toBeGreaterThanOrEqual(0)
  })
})

describe('the warning', () => {
  it('counts what is invisible and what looks like something else, and leaves unusual spaces out', () => {
    expect(describeWarnings(countWarnings(['a\u200bb\u2060', 'p\u0430ypal', 'a\xa0b\r\n']))).toBe(
      '2 invisible characters and 1 character that looks like another one',
    )
    expect(describeWarnings(countWarnings(['plain', 'a\xa0b']))).toBeUndefined()
  })
})
