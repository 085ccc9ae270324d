import type { Risk } from '../contract/risk.ts'
import { isPlainObject, type PlainObject } from '../documents/values.ts'
import { createEntry, type Entry } from './entry.ts'
import type { FoundServer, Refusal, StatedServer } from './format.ts'
import { keepVariableName, shellNotation, toTemplate, toVariableName } from './notation.ts'
import { findWord, readCommon, readTransport, toFoundServer } from './platform-entry.ts'
import { listEntries, type PlatformReading, withNote } from './platform-lists.ts'
import { approvalMessage, oauthMessage, readRemote } from './read.ts'

const usual = ['kind', 'url', 'headers']

/** `mcp_connectors`: addresses with one secret each. */
export function readConnectors({ mcp_connectors: connectors }: PlainObject): PlatformReading {
  const { named, reported } = listEntries(connectors, 'mcp_connectors')
  const read = named.map(({ key, fields, note }) => ({ key, note, found: readConnector(key, fields) }))
  return {
    servers: read.flatMap(({ found, note }) => {
      if ('refused' in found) return []
      return note === undefined ? found : withNote(found, { field: 'name', message: note })
    }),
    reported: [
      ...reported,
      ...read.flatMap(({ key, found }) => ('refused' in found ? [{ key, message: found.refused }] : [])),
    ],
  }
}

function readConnector(key: string, fields: PlainObject): FoundServer | Refusal {
  const entry = createEntry(key, fields, shellNotation)
  const word = (field: Parameters<typeof findWord>[1]) => findWord(entry, field, usual)
  entry.leave(['autoApprove', 'auto_approve', 'trust', 'trusted'], approvalMessage)
  const transport = readTransport(entry, word)
  if (typeof transport !== 'string') return transport
  if (transport === 'stdio') return { refused: 'is a command, and a connector has an address' }
  const remote = readRemote(entry, { transport, url: word('url') ?? 'url', headers: word('headers') ?? 'headers' })
  if ('refused' in remote) return remote
  const auth = readAuth(entry, fields)
  if ('refused' in auth) return auth
  const definition: StatedServer = {
    ...remote,
    ...readCommon(entry, word),
    headers: { ...remote.headers, ...auth.headers },
    defaultRisk: readRisk(entry),
  }
  return toFoundServer(entry, definition)
}

type Auth = { readonly headers: Readonly<Record<string, string>> }

const kindWords = ['type', 'kind', 'method', 'scheme']
const headerWords = ['header', 'header_name', 'headerName', 'name']
const referenceWords = [
  'secret_ref',
  'secretRef',
  'secret',
  'secret_name',
  'secretName',
  'token_ref',
  'tokenRef',
  'env',
]
const valueWords = ['token', 'value', 'api_key', 'apiKey']

/** `auth: { type: bearer, secret_ref: NAME }`, or the same fields beside `auth: bearer`. */
function readAuth(entry: Entry, fields: PlainObject): Auth | Refusal {
  const auth = entry.raw('auth')
  const flat = ['auth_type', 'authType'].find((name) => typeof fields[name] === 'string')
  if (auth === undefined && flat === undefined) return { headers: {} }
  const nested = isPlainObject(auth) ? auth : fields
  const kindField = isPlainObject(auth) ? kindWords.find((name) => typeof auth[name] === 'string') : flat
  const kind = typeof auth === 'string' ? auth : kindField === undefined ? '' : String(nested[kindField])
  const parts: AuthParts = { entry, fields: nested, path: isPlainObject(auth) ? 'auth.' : '' }
  if (flat !== undefined) entry.ignore(flat)
  if (isPlainObject(auth)) noteOthers(parts, kindField)
  return toHeaders(parts, kind.toLowerCase().replace(/[^a-z]/g, ''))
}

type AuthParts = { readonly entry: Entry; readonly fields: PlainObject; readonly path: string }

function toHeaders(parts: AuthParts, kind: string): Auth | Refusal {
  const { entry, path } = parts
  if (kind === 'none' || kind === 'noauth') return { headers: {} }
  if (kind.startsWith('oauth')) {
    entry.note('auth', oauthMessage)
    return { headers: {} }
  }
  if (kind === 'bearer' || kind === 'bearertoken') {
    const secret = readSecret(parts)
    return 'refused' in secret ? secret : { headers: { Authorization: `Bearer ${secret.text}` } }
  }
  if (kind !== 'customheader' && kind !== 'header' && kind !== 'apikey') {
    return { refused: `${path}type is not bearer, custom_header or none` }
  }
  const header = pick(parts, path === '' ? headerWords.filter((word) => word !== 'name') : headerWords)
  if (header === undefined) return { refused: `${path}header is missing: the name of the header` }
  const secret = readSecret(parts)
  return 'refused' in secret ? secret : { headers: { [header.text]: `${readPrefix(parts)}${secret.text}` } }
}

function readPrefix(parts: AuthParts): string {
  const prefix = pick(parts, ['prefix', 'value_prefix', 'valuePrefix'])?.text
  if (prefix === undefined || prefix === '') return ''
  return prefix.endsWith(' ') ? prefix : `${prefix} `
}

/** A reference becomes `${NAME}`. A value stays in the text; whoever saves the server moves it into a secret. */
function readSecret(parts: AuthParts): { text: string } | Refusal {
  const { entry, path } = parts
  const value = pick(parts, valueWords)
  if (value !== undefined) return { text: entry.convert(`${path}${value.word}`, value.text) }
  const reference = pick(parts, referenceWords)
  if (reference === undefined) {
    const name = `${toVariableName(entry.key)}_TOKEN`
    entry.note(`${path}secret_ref`, `is missing: store the value as \${${name}}`)
    entry.need({ name, secret: true })
    return { text: toTemplate({ name }) }
  }
  const field = `${path}${reference.word}`
  if (reference.word === 'secret' && !looksLikeName(reference.text)) {
    entry.note(field, 'was read as the value of the secret, not as its name')
    return { text: entry.convert(field, reference.text) }
  }
  if (reference.text.length > 200) return { refused: `${field} is not the name of a secret` }
  const name = toSecretName(reference.text)
  entry.note(field, `was read as the name of a secret: \${${name}}`)
  entry.need({ name, secret: true })
  return { text: toTemplate({ name }) }
}

/** `API_KEY`, `api-key`, `${API_KEY}`, `secrets/api-key`, `env:API_KEY`. */
function looksLikeName(text: string): boolean {
  return /^\$?\{?[A-Z][A-Z0-9_]*\}?$|^[a-z]+([-_.][a-z]+)*$|^(env|secrets?|vault)[:/]/.test(text)
}

function toSecretName(reference: string): string {
  const plain = reference
    .trim()
    .replace(/^\$?\{+\s*|\s*\}+$/g, '')
    .replace(/^(?:env|secrets?|vault)(?::\/\/|[:./])/i, '')
  return keepVariableName(plain)
}

type Picked = { readonly word: string; readonly text: string }

/** The first of these fields that is a text. A reference may also be `{ name: … }`. */
function pick({ fields, entry, path }: AuthParts, words: readonly string[]): Picked | undefined {
  for (const word of words) {
    const value = fields[word]
    const text = isPlainObject(value) ? (value.name ?? value.key ?? value.id) : value
    if (typeof text !== 'string' || text === '') continue
    if (path === '') entry.ignore(word)
    return { word, text }
  }
  return undefined
}

const authWords = [...headerWords, ...referenceWords, ...valueWords, 'prefix', 'value_prefix', 'valuePrefix']

function noteOthers({ entry, fields }: AuthParts, kindField: string | undefined): void {
  for (const name of Object.keys(fields))
    if (name !== kindField && !authWords.includes(name)) entry.note(`auth.${name}`, 'is not known and is left out')
}

const risks: Readonly<Record<string, Risk>> = {
  read: 'read',
  readonly: 'read',
  write: 'write',
  danger: 'danger',
  dangerous: 'danger',
  destructive: 'danger',
  low: 'write',
  medium: 'write',
  high: 'danger',
  critical: 'danger',
}

/** `low` does not say that nothing is changed, so it is not `read`. */
function readRisk(entry: Entry): Risk | undefined {
  const field = ['default_risk', 'defaultRisk', 'risk'].find((name) => entry.has(name))
  const text = field === undefined ? undefined : entry.text(field)
  if (field === undefined || text === undefined) return undefined
  const plain = text.toLowerCase().replace(/[^a-z]/g, '')
  const risk = Object.hasOwn(risks, plain) ? risks[plain] : undefined
  if (risk === undefined) entry.note(field, 'is not read, write or danger and is left out')
  else entry.note(field, `is the risk of tools without annotations: ${risk}`)
  return risk
}
