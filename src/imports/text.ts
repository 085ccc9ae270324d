import { GatewayError } from '../contract/errors.ts'
import { type DocumentFormat, parseForeign, withoutQuotes } from '../documents/parse.ts'
import { isPlainObject, type PlainObject } from '../documents/values.ts'

const mostBytes = 1_048_576
const mostDepth = 64

/** The value of a text in JSON, with or without comments, TOML or YAML. Throws `import-unreadable`. */
export function readImportText(written: string): PlainObject {
  if (Buffer.byteLength(written) > mostBytes) throw unreadable('The text is larger than 1 MiB')
  const text = withoutFence(written.replace(/^\uFEFF/, ''))
  const faults: string[] = []
  for (const format of listFormats(text)) {
    const parsing = parseForeign(format, text)
    if (!parsing.ok) {
      const [fault] = parsing.faults
      faults.push(`line ${fault?.position.line ?? 1} ${withoutQuotes(fault?.message ?? '', format)}`)
    } else if (isPlainObject(parsing.parsed.value)) return checked(parsing.parsed.value)
  }
  throw unreadable(`The text is not a JSON, YAML or TOML document with names and values: ${faults[0] ?? 'it is empty'}`)
}

/** People copy examples with the marks of a code block around them. */
function withoutFence(text: string): string {
  return /^\s*```[^\n]*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text
}

/** The syntaxes that the text may have, the most likely one first. YAML also accepts JSON, but its errors are less clear. */
function listFormats(text: string): readonly DocumentFormat[] {
  if (/^\s*(?:\{|\/[/*])/.test(text)) return ['json', 'jsonc', 'yaml']
  return /^\s*(?:\[\[?[\w."' -]+\]\]?\s*(?:#.*)?$|[\w."-]+\s*=)/m.test(text) ? ['toml', 'yaml'] : ['yaml', 'toml']
}

function checked(document: PlainObject): PlainObject {
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value: document, depth: 1 }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next
    if (typeof value === 'string' && !value.isWellFormed())
      throw unreadable('The text contains half of a surrogate pair')
    if (typeof value !== 'object' || value === null) continue
    if (depth > mostDepth) throw unreadable(`The text is nested deeper than ${mostDepth} levels`)
    for (const [key, entry] of Object.entries(value)) {
      if (key === '__proto__' || !key.isWellFormed()) throw unreadable('The text contains a key that is not allowed')
      pending.push({ value: entry, depth: depth + 1 })
    }
  }
  return document
}

function unreadable(message: string): GatewayError {
  return new GatewayError('import-unreadable', message)
}
