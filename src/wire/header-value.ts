/** Visible ASCII without surrounding spaces is sent as it is, everything else in base64. */
export function toHeaderValue(text: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !(text.startsWith('=?base64?') && text.endsWith('?='))) {
    return text
  }
  return `=?base64?${Buffer.from(text).toString('base64')}?=`
}

/** Undefined for a value that is marked as base64 and is not valid base64. */
export function fromHeaderValue(value: string): string | undefined {
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value
  const encoded = value.slice('=?base64?'.length, -'?='.length)
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.toString('base64') === encoded ? bytes.toString('utf8') : undefined
}
