import { ServerTitle } from '../contract/server.ts'
import { isPlainObject, type PlainObject, valueAt } from '../documents/values.ts'
import { createEntry, type Entry } from './entry.ts'
import type { Codec, FoundServer, Reading, Refusal, Reported, StatedServer } from './format.ts'

/** Reads the servers of a document of this program. Starts, resolves and contacts nothing. */
export function readDocument(codec: Codec, document: unknown): Reading {
  const servers: FoundServer[] = []
  const reported: Reported[] = [...(codec.report?.(document) ?? [])]
  const home = codec.home(document)
  const entries = valueAt(document, home)
  if (!isPlainObject(entries)) {
    const message = entries === undefined ? undefined : 'is not a map of servers'
    return { servers, reported: message === undefined ? reported : [...reported, { key: home.join('.'), message }] }
  }
  for (const [key, fields] of Object.entries(entries)) {
    const found = isPlainObject(fields) ? readEntry(codec, { key, fields, document }) : { refused: 'is not a server' }
    if ('refused' in found) reported.push({ key, message: found.refused })
    else servers.push(found)
  }
  return { servers, reported }
}

type Place = { readonly key: string; readonly fields: PlainObject; readonly document: unknown }

function readEntry(codec: Codec, { key, fields, document }: Place): FoundServer | Refusal {
  const entry = createEntry(key, fields, codec.notationOf?.(document) ?? codec.notation)
  const definition = codec.read(entry, document)
  if ('refused' in definition) return definition
  return { key, definition: withoutMissing(definition), ...entry.finish() }
}

/** Without the fields that are undefined or empty, so that a definition contains only what the file states. */
function withoutMissing(definition: StatedServer): StatedServer {
  const stated = Object.entries(definition).filter(([, value]) => !isEmpty(value))
  return { ...Object.fromEntries(stated), transport: definition.transport }
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  return value === undefined || (isPlainObject(value) && Object.values(value).every((field) => field === undefined))
}

type LocalFields = {
  readonly command?: string
  readonly args?: string
  readonly env?: string
  readonly cwd?: string
}

/** A server that is started as a command. */
export function readLocal(entry: Entry, fields: LocalFields = {}): StatedServer | Refusal {
  const { command: commandField = 'command', args = 'args', env = 'env', cwd = 'cwd' } = fields
  const command = entry.template(commandField)
  if (command === undefined || command === '') return { refused: missing(entry, commandField, 'a text') }
  return {
    transport: 'stdio',
    command,
    args: entry.templates(args),
    env: entry.templateRecord(env),
    cwd: readFolder(entry, cwd),
  }
}

/** Sallyport does not replace variables in `cwd`. */
export function readFolder(entry: Entry, field: string): string | undefined {
  const folder = entry.template(field)
  if (folder === undefined || !folder.includes('${')) return folder
  entry.note(field, 'contains a variable, which is not possible in cwd here; it is left out')
  return undefined
}

type RemoteFields = { readonly transport: 'http' | 'sse'; readonly url?: string; readonly headers?: string | false }

/** A server at an address. */
export function readRemote(entry: Entry, fields: RemoteFields): StatedServer | Refusal {
  const { transport, url: urlField = 'url', headers = 'headers' } = fields
  const url = entry.template(urlField)
  if (url === undefined || url === '') return { refused: missing(entry, urlField, 'an address') }
  if (/^wss?:/i.test(url)) return { refused: 'uses WebSocket, which Sallyport does not support' }
  if (/^(unix|pipe|file):/i.test(url))
    return { refused: 'has an address that is a local socket; Sallyport needs http or https' }
  return { transport, url, headers: headers === false ? undefined : entry.templateRecord(headers) }
}

function missing(entry: Entry, field: string, expected: string): string {
  return entry.has(field) ? `${field} is not ${expected}` : `${field} is missing`
}

/** A name for people. Undefined if it is the name of the entry. */
export function readTitle(entry: Entry, field: string): string | undefined {
  const title = entry.text(field)
  if (title === undefined || title === '' || title === entry.key) return undefined
  const parsed = ServerTitle.safeParse(title)
  if (!parsed.success) entry.note(field, 'is not possible as a title here and is left out')
  return parsed.data
}

/** Exact tool names become globs, in which `*` and `?` are special. */
export function toToolGlobs(entry: Entry, field: string): string[] | undefined {
  const names = entry.texts(field)
  if (names?.some((name) => /[*?]/.test(name))) entry.note(field, '* and ? match other characters here')
  return names
}

/** `seconds` or milliseconds as whole milliseconds; undefined with a note if the limit is too short here. */
export function readTime(entry: Entry, field: string, { unit, least }: { unit: 1 | 1000; least: number }) {
  const value = entry.number(field)
  if (value === undefined) return undefined
  const time = Math.round(value * unit)
  if (time >= least && Number.isSafeInteger(time)) return time
  entry.note(field, `is outside the limits here and is left out`)
  return undefined
}

export const leastTime = { connect: 100, call: 10 } as const

/** Settings with which a program runs tools without asking. They never become rules, risk or trust. */
export const approvalMessage =
  'allowed calls without asking in that program. This is not taken over: Sallyport has its own rules'

export const oauthMessage = 'describes a sign-in with OAuth in that program and is not taken over'

export const envFileMessage = 'names a file with variables, which is not read: store the values as secrets'

export const sandboxMessage = 'describes a sandbox of that program and is not taken over'

export function hasServers(document: unknown, key: string): boolean {
  return isPlainObject(valueAt(document, [key]))
}

/** The entries of a map of servers that are maps. */
export function entriesAt(document: unknown, path: readonly string[]): PlainObject[] {
  const entries = valueAt(document, path)
  return isPlainObject(entries) ? Object.values(entries).filter(isPlainObject) : []
}

/** Whether a text of these entries matches. */
export function someText(entries: readonly PlainObject[], pattern: RegExp): boolean {
  return pattern.test(JSON.stringify(entries))
}
