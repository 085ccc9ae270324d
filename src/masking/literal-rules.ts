import { isSecretHeader, isSecretName, isSecretValue, schemeLength } from './secret-names.ts'
import type { Range } from './token-ranges.ts'

/** Why a text is a secret: its well-known form, the name of its header, variable or argument, or its part of a URL. */
export type Why = 'token' | 'header' | 'variable' | 'argument' | 'url'

/** The range of a secret in a text. `key` is the name that the text itself gives it, such as an option. */
export type Found = Range & { readonly why: Why; readonly key?: string }

export function inHeader(name: string, value: string): Found[] {
  if (!isSecretHeader(name)) return []
  if (/^cookie$/i.test(name) && value.includes('${')) return inCookie(value)
  return [{ start: schemeLength(value), end: value.length, why: 'header' }]
}

/** A cookie header in which only some values are templates. */
function inCookie(value: string): Found[] {
  return [...value.matchAll(/=([^;]+)/g)].map((match) => {
    const start = match.index + 1
    return { start, end: match.index + match[0].length, why: 'header' }
  })
}

export function inVariable(name: string, value: string): Found[] {
  if (isSecretName(name) && isSecretValue(name, value)) return [{ start: 0, end: value.length, why: 'variable' }]
  return [...inUrl(value), ...inJson(value)]
}

/** `--api-key=VALUE`, `--api-key VALUE`, `-e API_KEY=VALUE`, and `--header 'Authorization: Bearer VALUE'`. */
export function inArgument(text: string, before: string | undefined): Found[] {
  const assigned = /^(-{0,2}([A-Za-z][\w.-]*)=)(.*)$/s.exec(text)
  if (assigned !== null) {
    const [, start = '', name = '', value = ''] = assigned
    if (isSecretName(name) && isSecretValue(name, value))
      return [{ start: start.length, end: text.length, why: 'argument', key: name }]
    const header = isHeaderFlag(name) ? inHeaderLine(value) : []
    return [...inUrl(text), ...header.map((found) => moved(found, start.length))]
  }
  const flag = /^-{1,2}([A-Za-z][\w.-]*)$/.exec(before ?? '')?.[1]
  const isValue = flag !== undefined && !text.startsWith('-')
  if (isValue && isSecretName(flag) && isSecretValue(flag, text))
    return [{ start: 0, end: text.length, why: 'argument', key: flag }]
  return [...inUrl(text), ...inJson(text), ...inHeaderLine(text, isValue && isHeaderFlag(flag))]
}

function isHeaderFlag(name: string): boolean {
  return /^(?:h|headers?)$/i.test(name)
}

/** `Name: value`. Without a header flag before it, only names that are certainly headers with secrets. */
function inHeaderLine(text: string, isHeader = true): Found[] {
  const match = /^(([A-Za-z][A-Za-z0-9-]*):\s*)(.+)$/s.exec(text)
  if (match === null) return []
  const [, start = '', name = '', value = ''] = match
  if (!isHeader && !/^(?:proxy-)?authorization$|^cookie$|^x-/i.test(name)) return []
  return inHeader(name, value).map((found) => ({ ...moved(found, start.length), key: name }))
}

function moved(found: Found, by: number): Found {
  return { ...found, start: found.start + by, end: found.end + by }
}

/** The password of a URL, and query parameters with the name of a secret. */
export function inUrl(text: string): Found[] {
  const begin = /[A-Za-z][A-Za-z0-9+.-]{0,30}:\/\//.exec(text)
  if (begin === null) return []
  const from = begin.index + begin[0].length
  const authority = /^[^/?#\s]*/.exec(text.slice(from))?.[0] ?? ''
  const at = authority.lastIndexOf('@')
  const colon = authority.indexOf(':')
  const password: Found[] =
    at > 0 && colon !== -1 && colon < at - 1
      ? [{ start: from + colon + 1, end: from + at, why: 'url', key: 'password' }]
      : []
  const query = [...text.slice(from).matchAll(/([?&;])([\w.~%-]{1,64})=([^&#;\s]*)/g)].flatMap((match): Found[] => {
    const [whole, , name = '', value = ''] = match
    const isSecret = isSecretParameter(name) && isSecretValue(name, value)
    const end = from + match.index + whole.length
    return isSecret ? [{ start: end - value.length, end, why: 'url', key: name }] : []
  })
  return [...password, ...query]
}

function isSecretParameter(name: string): boolean {
  return isSecretName(name) || /^(?:auth|sig|signature|jwt|code)$/i.test(name)
}

/** Some programs take their headers or settings as JSON in one variable. */
function inJson(text: string): Found[] {
  if (!/^\s*[{[]/.test(text)) return []
  return [...text.matchAll(/"([^"\\]{1,128})"(\s*:\s*)"((?:[^"\\]|\\.)*)"/g)].flatMap((match): Found[] => {
    const [whole, key = '', , value = ''] = match
    if (!isSecretHeader(key) && !(isSecretName(key) && isSecretValue(key, value))) return []
    const end = match.index + whole.length - 1
    const start = end - value.length
    return [{ start: start + schemeLength(value), end, why: 'variable', key }]
  })
}
