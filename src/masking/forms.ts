/**
 * The encodings in which a value may appear: plain, in base64 at each of its three alignments, in hexadecimal, and
 * escaped for URLs and for JSON as common encoders do it.
 */
export function toForms(value: string): string[] {
  const forms = [value, ...toBase64(value), ...toHex(value), ...toUrl(value), ...toJson(value)]
  // A text inside a JSON message is escaped once more, whatever its encoding.
  return [...new Set([...forms, ...forms.map(escapeJson)])]
}

/** Leaves out the base64 characters at both ends that also depend on the bytes around the value. */
function toBase64(value: string): string[] {
  const bytes = Buffer.from(value)
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const own = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

function toHex(value: string): string[] {
  const text = Buffer.from(value).toString('hex')
  return [text, text.toUpperCase()]
}

/**
 * The characters that URL encoders leave unchanged. One set for each kind of encoder: for a component, for a form, for a
 * whole URL, for a path, one that keeps only unreserved characters, one that keeps only letters and digits, and one that
 * encodes every character.
 */
const keeps = [/[\w.!~*'()-]/, /[\w.*-]/, /[\w.!~*'();,/?:@&=+$#-]/, /[\w.~/-]/, /[\w.~-]/, /[A-Za-z0-9]/, /[^\s\S]/]

function toUrl(value: string): string[] {
  return keeps.flatMap((keep) => {
    const upper = escapeUrl(value, keep, '%20')
    const form = escapeUrl(value, keep, '+')
    return [upper, lowerEscapes(upper), form, lowerEscapes(form)]
  })
}

function escapeUrl(value: string, keep: RegExp, blank: string): string {
  return [...value]
    .map((character) => {
      if (character === ' ') return blank
      return keep.test(character)
        ? character
        : Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&')
    })
    .join('')
}

function lowerEscapes(text: string): string {
  return text.replace(/%[0-9A-F]{2}/g, (escaped) => escaped.toLowerCase())
}

function toJson(value: string): string[] {
  const plain = escapeJson(value)
  const slashed = plain.replaceAll('/', '\\/')
  const careful = plain.replace(/[<>&'\u2028\u2029]/g, toUnicodeEscape)
  const ascii = [plain, slashed, careful].map((text) => text.replace(/[\u007f-\uffff]/g, toUnicodeEscape))
  const whole = Array.from({ length: value.length }, (_, index) => toUnicodeEscape(value[index] ?? '')).join('')
  return [plain, slashed, careful, ...ascii, whole].flatMap((text) => [text, upperEscapes(text)])
}

function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function toUnicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function upperEscapes(text: string): string {
  return text.replace(/\\u[0-9a-f]{4}/g, (escaped) => `\\u${escaped.slice(2).toUpperCase()}`)
}
