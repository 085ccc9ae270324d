import { editDocument } from '../documents/edit.ts'
import { DocumentError } from '../documents/error.ts'
import { type DocumentFormat, type Fault, parseForeign } from '../documents/parse.ts'
import { isPlainObject, isSame, own, type Path, type PlainObject, type Step, valueAt } from '../documents/values.ts'
import { createDraft } from './draft.ts'
import type { Codec, NamedServer, Note, Refusal } from './format.ts'

/** What became of one server. `key` is its name in the file. */
export type WrittenServer = {
  readonly name: string
  readonly key: string
  readonly notes: readonly Note[]
  /** Set if the server was not written: why. */
  readonly refused?: string
}

export type Writing =
  | { readonly ok: true; readonly text: string; readonly servers: readonly WrittenServer[] }
  | { readonly ok: false; readonly message: string }

/** Writes servers into a text, and keeps its comments and everything else. An entry of the same name is replaced. */
export function writeServers(codec: Codec, text: string, servers: readonly NamedServer[]): Writing {
  let edited = text.trim() === '' ? emptyText(codec.format) : text
  const written: WrittenServer[] = []
  for (const server of servers) {
    const read = readText(codec.format, edited)
    if (!read.ok) return read
    const entry = toEntry(codec, server, read.value)
    if ('refused' in entry) {
      written.push({ name: server.name, key: server.name, notes: [], refused: entry.refused })
      continue
    }
    const key = codec.toKey?.(server.name) ?? server.name
    const notes =
      key === server.name ? entry.notes : [...entry.notes, { field: 'name', message: `is written as ${key}` }]
    const edit = setEntry(codec, edited, {
      path: [...codec.home(read.value), key],
      value: read.value,
      entry: entry.fields,
    })
    if (!edit.ok) return edit
    edited = edit.text
    written.push({ name: server.name, key, notes })
  }
  return { ok: true, text: edited, servers: written }
}

export type Removal = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly message: string }

/** Removes one entry, and keeps comments and everything else. */
export function removeServer(codec: Codec, text: string, key: string): Removal {
  const read = readText(codec.format, text)
  if (!read.ok) return read
  return setEntry(codec, text, { path: [...codec.home(read.value), key], value: read.value, entry: undefined })
}

type Read = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string }

export function readText(format: DocumentFormat, text: string): Read {
  const parsing = parseForeign(format, text)
  return parsing.ok
    ? { ok: true, value: parsing.parsed.value ?? {} }
    : { ok: false, message: describeFaults(parsing.faults) }
}

export function describeFaults(faults: readonly Fault[]): string {
  const [first] = faults
  if (first === undefined) return 'cannot be read'
  return `line ${first.position.line}: ${first.key === '' ? 'the file' : first.key} ${first.message}`
}

type NewEntry = { readonly fields: PlainObject; readonly notes: readonly Note[] }

function toEntry(codec: Codec, server: NamedServer, document: unknown): NewEntry | Refusal {
  const draft = createDraft(server, codec.notationOf?.(document) ?? codec.notation, codec.title)
  const fields = codec.write(draft, document)
  if (isRefusal(fields)) return fields
  // A program without this switch would use a server that is off here.
  if (draft.take('enabled') === false)
    return { refused: `is disabled, and ${codec.title} cannot disable a server in its file` }
  const stated = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { fields: Object.fromEntries(stated), notes: draft.finish() }
}

function isRefusal(fields: PlainObject | Refusal): fields is Refusal {
  return typeof fields.refused === 'string'
}

type EntryEdit = { readonly path: Path; readonly value: unknown; readonly entry: PlainObject | undefined }

function setEntry({ format }: Codec, text: string, { path, value, entry }: EntryEdit): Removal {
  const old = valueAt(value, path)
  const whole: Step[] = [{ path, value: entry }]
  try {
    const steps = entry !== undefined && isPlainObject(old) ? toFieldSteps(path, old, entry) : whole
    return { ok: true, text: editDocument(text, format, { steps, base: path, value }) }
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    return { ok: false, message: `${path.join('.')} ${error.message}` }
  }
}

/** Changes the fields one by one, so that comments inside the old entry stay. */
function toFieldSteps(path: Path, old: PlainObject, entry: PlainObject): Step[] {
  const changed = Object.entries(entry).filter(([field, value]) => !isSame(own(old, field) ?? null, value))
  const gone = Object.keys(old).filter((field) => own(entry, field) === undefined)
  return [
    ...changed.map(([field, value]) => ({ path: [...path, field], value })),
    ...gone.map((field) => ({ path: [...path, field], value: undefined })),
  ]
}

function emptyText(format: DocumentFormat): string {
  return format === 'json' || format === 'jsonc' ? '{}\n' : ''
}
