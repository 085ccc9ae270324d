import { characterBefore } from './characters.ts'

/**
 * Letters that are drawn like an ASCII letter in common fonts, by script. The table only has to find whole words that
 * read as an ASCII word. A letter of another alphabet inside a Latin word is found without this table.
 */
const lookAlikes = new Set([
  ...'АВЕЅІЈКМНОРСТУХЗҮԌԚԜӀаеорсухіјѕԁһԛԝӏүгѵ', // Cyrillic
  ...'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳανοιρυκχγϲτω', // Greek
  ...'ՕՏՍԼՅօոսհցզյք', // Armenian
  ...'ᎠᎡᎢᎥᎩᎪᎬᎳᎷᎻᎽᏀᏂᏃᏎᏏᏒᏔᏙᏚᏞᏟᏢᏦᏧᏩᏪᏴ', // Cherokee
  ...'ꓐꓑꓒꓓꓔꓖꓗꓙꓚꓝꓞꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ', // Lisu
  ...'ⲀⲂⲈⲎⲒⲔⲘⲚⲞⲢⲤⲦⲨⲬⲟⲣⲥⲓⲕⲩⲭ', // Coptic
  ...'ⵔⵏⵊⵝⵎ', // Tifinagh
  ...'ჿყ', // Georgian
])

/** Greek letters that are written next to Latin letters in formulas and scientific names: `TNFα`, `γ-ray`, `Kω`. */
const ofScience = new Set('αγκτχω')

/** Hangul fillers have the category "letter", but they are reported as invisible characters. */
const word = /[[\p{L}\p{M}\p{Nl}]--\p{Default_Ignorable_Code_Point}]+/gv
const token = /[^\s"]+/gu
/** Mathematical letters (U+1D400 to U+1D7FF) are read as Latin letters. */
const latin = /[\p{Script=Latin}\u{1d400}-\u{1d7ff}]/u
const asciiLetter = /[A-Za-z]/
const letter = /\p{L}/u
/** Alphabets that are never mixed with Latin letters in one word. */
const apart =
  /[\p{Script=Cyrillic}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Lisu}\p{Script=Coptic}\p{Script=Georgian}\p{Script=Tifinagh}\p{Script=Deseret}\p{Script=Gothic}\p{Script=Glagolitic}\p{Script=Old_Italic}\p{Script=Runic}\p{Script=Canadian_Aboriginal}\p{Script=Vai}\p{Script=Carian}\p{Script=Lycian}\p{Script=Lydian}\p{Script=Osage}\p{Script=Bamum}\p{Script=Ol_Chiki}]/u
/** Scripts that are mixed with Latin letters in ordinary text: `Tシャツ`, `IT부서`; Greek in `μs`, `ΔE`. */
const mixesWithLatin =
  /[\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}\p{Script=Greek}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}]/u
/** Mathematical letters and digits, which are drawn as ASCII letters and digits in another style. */
const mathematical = /[\u{1d400}-\u{1d7ff}]/u
/** Latin letters of phonetic alphabets and other variants of ASCII letters: `ɡ`, `ᴏ`, the Kelvin sign, `ⅼ`, `ｌ`, `ǀ`. */
const dressedLatin =
  /[\u01c0\u0250-\u02af\u1d00-\u1dbf\u212a\u2160-\u217f\ua730\ua731\ua7fa\uab30-\uab5a\uab60-\uab68\uff21-\uff3a\uff41-\uff5a]/u
/** A word of small capitals, which reads like an ASCII word. */
const smallCapitals = /^[ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ]{3,}$/u
const foreignDigit = /[\p{Nd}--[0-9]]/v
const asciiLetterOrDigit = /[A-Za-z0-9]/
/** Characters that are drawn like the separators in URLs and paths. */
const separators = /[\u02d0\u037e\u0589\u05c3\u2024\u2044\u2215\u2216\u2236\u29f5\u29f8\ua789\ufe52\ufe55\ufe68]/u
/** Escapes that JSON and `toVisible` write for one character. Their letters are not part of the word that follows. */
const escapes = /\\(?:u\{([0-9a-f]{1,6})\}|u([0-9a-f]{4})|([bfnrt]))/gi

export type LookAlike = { readonly index: number; readonly character: string; readonly ofScience: boolean }

/**
 * Letters that look like ASCII letters but are different characters: letters of another alphabet inside a Latin word,
 * whole words of look-alike letters in a text that is not otherwise written in that alphabet, and variants of ASCII
 * letters, digits and separators. Ordinary text in another alphabet contains none of them. Linear in the length of the
 * text.
 */
export function findLookAlikes(text: string): LookAlike[] {
  const shown = withoutEscapes(text)
  const found: LookAlike[] = []
  const judge = { found, isGenuine: genuinePhrases(shown) }
  for (const { index, 0: piece } of shown.matchAll(token)) {
    if (!isAscii(piece)) judgeToken(piece, index, judge)
  }
  return found.sort((left, right) => left.index - right.index)
}

/**
 * Replaces every escape with a space, a line break or `sign`. The length of the text stays the same, so that positions
 * stay valid.
 */
function withoutEscapes(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(escapes, (written, braced?: string, plain?: string, letter?: string) => {
    const code = Number.parseInt(braced ?? plain ?? '0', 16)
    const isLineEnd = letter === 'n' || letter === 'r'
    const isGap = letter !== undefined || (code <= 0x10ffff && /\s/.test(String.fromCodePoint(code)))
    return (isLineEnd ? '\n' : isGap ? ' ' : sign).repeat(written.length)
  })
}

/** A character that is neither a letter nor a space. */
const sign = '\u00b7'

type Judge = { readonly found: LookAlike[]; isGenuine(index: number): boolean }

function judgeToken(piece: string, start: number, judge: Judge): void {
  const beside = { latin: latin.test(piece), ascii: asciiLetterOrDigit.test(piece) }
  for (const { index, 0: letters } of piece.matchAll(word)) {
    if (!isAscii(letters)) judgeWord(letters, start + index, { ...judge, latinBeside: beside.latin })
  }
  let index = start
  for (const character of piece) {
    const isDigit = beside.ascii && foreignDigit.test(character)
    const isSeparator =
      (separators.test(character) && isBetween(piece, index - start, character)) ||
      (wideSeparators.test(character) && isInAddress(piece, index - start))
    if (isDigit || isSeparator || (mathematical.test(character) && !letter.test(character)))
      add(judge, index, character)
    index += character.length
  }
}

function isBetween(piece: string, at: number, character: string): boolean {
  const isDigits = /\d/.test(characterBefore(piece, at)) && /\d/.test(piece.charAt(at + character.length))
  const neighbours = `${characterBefore(piece, at)}${piece.charAt(at + character.length)}`
  return asciiLetterOrDigit.test(neighbours) && !(character === '\u2044' && isDigits)
}

/**
 * Wide punctuation is common in Chinese and Japanese text. Inside a URL it changes the host or path that the reader
 * sees.
 */
const wideSeparators = /[\u3002\uff0e\uff0f\uff1a\uff20\uff3c\uff61]/
const longestAddress = 100

function isInAddress(piece: string, at: number): boolean {
  const sign = piece.charAt(at)
  const before = /[!-~]*$/.exec(piece.slice(Math.max(0, at - longestAddress), at))?.[0] ?? ''
  const after = /^[!-~]*/.exec(piece.slice(at + 1, at + 1 + longestAddress))?.[0] ?? ''
  if (!asciiLetterOrDigit.test(before.slice(-1))) return false
  if (sign === '\uff1a') return after.startsWith('//')
  if (!asciiLetterOrDigit.test(after.charAt(0))) return false
  if (sign === '\uff20') return after.includes('.')
  const isSlash = sign === '\uff0f' || sign === '\uff3c'
  return /:\/\/|@/.test(before) || (isSlash && /[A-Za-z0-9-]\.[A-Za-z]{2,24}$/.test(before))
}

function judgeWord(letters: string, start: number, judge: Judge & { readonly latinBeside: boolean }): void {
  const isLatin = latin.test(letters)
  const isAsciiBeside = asciiLetter.test(letters)
  const isWhole = !isLatin && isAllLookAlike(letters) && isSuspect(letters, start, judge)
  const isDressedWhole = smallCapitals.test(letters)
  const last = isLatin ? lastLatin(letters) : -1
  let seenLatin = false
  let index = 0
  for (const character of letters) {
    const isMixed = isLatin && isOutOfPlace(character, seenLatin && index < last)
    const isDressed = isDressedWhole || mathematical.test(character) || (isAsciiBeside && dressedLatin.test(character))
    if (isMixed || isDressed || (isWhole && lookAlikes.has(character))) add(judge, start + index, character)
    if (latin.test(character)) seenLatin = true
    index += character.length
  }
}

/** `between`: the same word has Latin letters before and after this character. */
function isOutOfPlace(character: string, between: boolean): boolean {
  if (!letter.test(character)) return false
  return apart.test(character) || lookAlikes.has(character) || (between && !mixesWithLatin.test(character))
}

function lastLatin(letters: string): number {
  let last = -1
  let index = 0
  for (const character of letters) {
    if (latin.test(character)) last = index
    index += character.length
  }
  return last
}

/** Accents are ignored. */
function isAllLookAlike(letters: string): boolean {
  for (const character of letters) if (letter.test(character) && !lookAlikes.has(character)) return false
  return true
}

/** A single letter is suspect only when it is attached to Latin letters. */
function isSuspect(letters: string, start: number, judge: Judge & { readonly latinBeside: boolean }): boolean {
  if (judge.latinBeside) return true
  return letters.replace(/\P{L}/gu, '').length > 1 && !judge.isGenuine(start)
}

const phrase = /[^\p{Script=Latin}\n"]+/gu

/**
 * Whether the words around a position are really written in another alphabet: at least one of their letters does not
 * look like an ASCII letter.
 */
function genuinePhrases(text: string): (index: number) => boolean {
  let ends: { readonly end: number; readonly genuine: boolean }[] | undefined
  let at = 0
  return (index) => {
    ends ??= [...text.matchAll(phrase)].map(({ index: from, 0: words }) => {
      return { end: from + words.length, genuine: hasGenuine(text, from, words) }
    })
    // Positions only increase, because tokens are checked from left to right.
    while ((ends[at]?.end ?? Number.POSITIVE_INFINITY) <= index) at += 1
    return ends[at]?.genuine ?? false
  }
}

/** A word that is attached to Latin letters is ignored. */
function hasGenuine(text: string, from: number, words: string): boolean {
  for (const { index, 0: letters } of words.matchAll(word)) {
    const [start, end] = [from + index, from + index + letters.length]
    const isMixed = latin.test(letters) || latin.test(characterBefore(text, start)) || latin.test(text.charAt(end))
    if (!isMixed && isGenuineWord(letters)) return true
  }
  return false
}

function isGenuineWord(letters: string): boolean {
  for (const character of letters) if (letter.test(character) && !lookAlikes.has(character)) return true
  return false
}

function add({ found }: Judge, index: number, character: string): void {
  found.push({ index, character, ofScience: ofScience.has(character) })
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false
  return true
}
