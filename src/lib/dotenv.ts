export type Dotenv =
  | { readonly ok: true; readonly values: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly line: number; readonly message: string }

/**
 * Reads `NAME=value` lines. Supports comments, `export`, and values in single, double or back quotes, which may have
 * several lines. Only double quotes have escapes. `$NAME` in a value has no special meaning. Messages never contain a value.
 */
export function parseDotenv(source: string): Dotenv {
  const text = source.replace(/^\ufeff/, '').replace(/\r\n?/g, '\n')
  const values = new Map<string, string>()
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match) at += match[0].length
    return match ?? undefined
  }
  const fault = (message: string, offset = at): Dotenv => ({ ok: false, line: lineAt(text, offset), message })
  while (at < text.length) {
    if (take(/[ \t]*(?:#[^\n]*)?(?:\n|$)/y)) continue
    const start = at
    const [, name] = take(/[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*/y) ?? []
    if (name === undefined) return fault('is not NAME=value; a name has letters, digits and _')
    const quote = take(/["'`]/y)?.[0]
    const value = quote === undefined ? readPlain(take) : readQuoted(quote, take)
    if (value === undefined) return fault(`begins a value with ${quote} and does not end it`, start)
    if (!take(/[ \t]*(?:#[^\n]*)?(?:\n|$)/y)) return fault('has text after the closing quote')
    if (value.includes('\0')) return fault('contains a NUL character', start)
    values.set(name, value)
  }
  return { ok: true, values }
}

type Take = (pattern: RegExp) => RegExpExecArray | undefined

/** A `#` begins a comment only after a space, so that addresses with a fragment stay whole. */
function readPlain(take: Take): string {
  const line = take(/[^\n]*/y)?.[0] ?? ''
  return (/^#/.test(line) ? '' : line.replace(/[ \t]#.*$/, '')).trim()
}

function readQuoted(quote: string, take: Take): string | undefined {
  if (quote === "'") return take(/([^']*)'/y)?.[1]
  if (quote === '`') return take(/([^`]*)`/y)?.[1]
  const inner = take(/((?:[^"\\]|\\[\s\S])*)"/y)?.[1]
  return inner?.replace(/\\([\s\S])/g, (whole, letter: string) => escapes[letter] ?? whole)
}

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  '"': '"',
  '\\': '\\',
  $: '$',
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
