/** Whether every value of a header with this name is a secret. */
export function isSecretHeader(name: string): boolean {
  return /authorization|cookie|key|token|secret|password|credential/i.test(name)
}

/** The length of a scheme such as `Bearer ` at the start of a header value. */
export function schemeLength(value: string): number {
  return (
    /^\s*(?:Bearer|Basic|Token|ApiKey|Api-Key|Key|OAuth|DPoP|Digest|Negotiate)(?:\s+|$)/i.exec(value)?.[0].length ?? 0
  )
}

const secretWords: ReadonlySet<string> = new Set([
  'APIKEY',
  'APITOKEN',
  'AUTHTOKEN',
  'AUTHORIZATION',
  'COOKIE',
  'CREDENTIAL',
  'CREDENTIALS',
  'KEY',
  'KEYS',
  'PASSPHRASE',
  'PASSWD',
  'PASSWORD',
  'PAT',
  'SECRET',
  'SECRETS',
  'TOKEN',
  'TOKENS',
])

/** Last words of names whose value describes a secret and is none, such as `PUBLIC_KEY_PATH`. */
const describingWords: ReadonlySet<string> = new Set([
  'ALGORITHM',
  'AUDIENCE',
  'COUNT',
  'DIR',
  'DIRECTORY',
  'ENABLED',
  'ENDPOINT',
  'EXPIRY',
  'FILE',
  'FILENAME',
  'FOLDER',
  'FORMAT',
  'HEADER',
  'HOST',
  'ISSUER',
  'LAYOUT',
  'LENGTH',
  'LIMIT',
  'MODE',
  'NAME',
  'PATH',
  'PORT',
  'PREFIX',
  'SIZE',
  'TTL',
  'TYPE',
  'URI',
  'URL',
  'VERSION',
])

/** Whether a variable, an option or a parameter with this name usually contains a secret. */
export function isSecretName(name: string): boolean {
  const words = toWords(name)
  if (describingWords.has(words.at(-1) ?? '')) return false
  return words.some((word, index) => secretWords.has(word) && !(isKey(word) && words[index - 1] === 'PUBLIC'))
}

function isKey(word: string): boolean {
  return word === 'KEY' || word === 'KEYS'
}

function toWords(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter((word) => word !== '')
}

/** Whether the value of such a variable can be a secret: it is no switch, number, path, or URL without a secret. */
export function isSecretValue(name: string, value: string): boolean {
  if (/^\s*(?:true|false|yes|no|on|off|none|null|auto)?\s*$/i.test(value)) return value.trim() === ''
  const isNumber = /^[+-]?\d+(?:\.\d+)?$/.test(value)
  if (isNumber) return toWords(name).some((word) => /^PASS(?:WORD|WD|PHRASE)$/.test(word))
  return !isPath(value) && !/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(value)
}

/** Base64 can begin with a slash, so a long part with capitals, small letters and digits is not the part of a path. */
function isPath(value: string): boolean {
  if (!/^(?:~|\.{1,2})?\/|^[A-Za-z]:[\\/]/.test(value)) return false
  const isRandom = (part: string) => /[a-z]/.test(part) && /[A-Z]/.test(part) && /\d/.test(part)
  return !value.split(/[\\/]/).some((part) => part.length >= 10 && isRandom(part)) && !/[+=]$/.test(value)
}

/** Whether a text stands for a secret that people must fill in: `<your-token>`, `YOUR_API_KEY`, `xxx`, or nothing. */
export function isPlaceholder(value: string): boolean {
  const text = value.trim()
  if (text === '' || /^<[\w .:'/-]+>$|^\[[\w .:'-]+\]$|^\{\{?[\w .:-]+\}\}?$|^%\w+%$|^\$[A-Z][A-Z0-9_]*$/.test(text))
    return true
  if (
    /^(?:your|insert|enter|replace|paste)[-_ ](?:[A-Za-z0-9]+[-_ ])*(?:key|token|secret|password|pat|here|value)$/i.test(
      text,
    )
  )
    return true
  if (/^(?:replace|fill)[-_ ]?me$|^(?:todo|placeholder)$/i.test(text)) return true
  // `ghp_xxxx`, `sk-...` and `***`: after an optional prefix, one character is repeated.
  return /^(?:[A-Za-z]{1,10}[-_]){0,3}(?:([xX*.•…])\1{2,}|…)$/.test(text)
}
