import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { findFormat } from '../documents/parse.ts'
import type { Storage } from '../storage/storage.ts'
import { inForceName, parseInForce } from '../storage/tables/config-changes.ts'
import type { DocumentStore, StoredDocument, StoredNote } from '../storage/tables/documents.ts'
import { findCut, isUnfinished } from './changes.ts'
import type { ConfigProblem } from './problems.ts'
import { parseConfig, readText } from './read.ts'
import {
  type AuthoredText,
  type ConfigSource,
  type ConfigText,
  fileAuthor,
  readTextNow,
  type Unreadable,
} from './source.ts'

export type SharedConfig = {
  readonly documents: DocumentStore
  /** Resolves when the other gateways have read the new text. */
  announce(): Promise<void>
  /** Calls the listener when another gateway may have changed the text. */
  onChange(listener: () => Promise<void>): () => void
  /** This gateway has just created the file, so the file must not replace the shared text. */
  readonly fileIsNew: boolean
}

/** Gateways on one PostgreSQL database share one configuration. */
export function toSharedConfig(storage: SharedParts, fileIsNew: boolean): SharedConfig | undefined {
  if (storage.kind === 'sqlite') return undefined
  return {
    documents: storage.documents,
    announce: () => storage.changes.announce('config'),
    onChange: (listener) => storage.changes.on('config', listener),
    fileIsNew,
  }
}

type SharedParts = Pick<Storage, 'kind' | 'documents' | 'changes'>

const name = 'config'
/** Names of notes in the database: the digest of the last imported file, and of the last content of each file. */
const lastNote = 'config-file'
const noteOf = (file: string) => `config-file:${hostname()}:${file}`

type SharedSourceParts = { readonly file: string; readonly shared: SharedConfig }

/**
 * The text in force is in the database. The gateway's file is one way to change it. It is imported as a change by `file`
 * when it is edited while the gateway runs, and at a start if it was changed since the last import.
 */
export function createSharedSource({ file, shared }: SharedSourceParts): ConfigSource {
  const { documents } = shared
  const ownFormat = findFormat(file) ?? 'yaml'
  /** The last known text of this gateway's file. */
  let known = ''
  let found: StoredDocument | undefined
  let unannounced = false

  async function first(): Promise<ConfigText | Unreadable> {
    const seen = await readText(file)
    if (typeof seen !== 'string') return { problems: [seen] }
    const reading = parseConfig(file, seen)
    if (!reading.ok) return { problems: reading.problems }
    unannounced = await documents.replace({ name, format: ownFormat, text: seen, version: 0 }, { notes: toNotes(seen) })
    found = await documents.find(name)
    known = unannounced || (await isOld(seen)) ? seen : ''
    return found ? toText(found) : { file, text: seen }
  }

  /** Whether the file is unchanged since this or another gateway last imported it. */
  async function isOld(seen: string): Promise<boolean> {
    const [own, last] = await Promise.all([documents.find(noteOf(file)), documents.find(lastNote)])
    const old = shared.fileIsNew || (own ?? last)?.text === toDigest(seen)
    if (old && !own && found) await documents.replace(found, { notes: [{ name: noteOf(file), text: toDigest(seen) }] })
    return old
  }

  function toNotes(text: string): StoredNote[] {
    return [noteOf(file), lastNote].map((each) => ({ name: each, text: toDigest(text) }))
  }

  async function read(inForce: ConfigText): Promise<AuthoredText | Unreadable> {
    const texts = await documents.findAll([name, inForceName])
    found = texts.get(name)
    const note = texts.get(inForceName)
    const recorded = note && parseInForce(note.text)
    // Changes of other gateways come first: an edit of the file applies to the shared text.
    if (found && found.text !== inForce.text)
      return { ...toText(found), by: recorded?.by ?? fileAuthor, recorded, elsewhere: true }
    const edited = await findEdit()
    if (edited !== undefined && typeof edited !== 'string') return { problems: edited }
    if (edited === inForce.text) await noteSame(edited)
    if (edited === undefined) return { ...inForce, by: fileAuthor, recorded }
    return { ...toText({ format: ownFormat, text: edited }), by: fileAuthor }
  }

  /** The file was edited to the text that is already in force: marks it as imported. */
  async function noteSame(text: string): Promise<void> {
    if (found && (await documents.replace(found, { notes: toNotes(text) }))) known = text
  }

  /** The text of the file if it was edited, or its problems. Undefined if it is unchanged. */
  async function findEdit(): Promise<string | readonly ConfigProblem[] | undefined> {
    const seen = await readTextNow(file)
    if (seen === known) return undefined
    if (typeof seen !== 'string') return [seen]
    const cut = findCut(file, seen, known)
    if (cut) return [cut]
    const reading = parseConfig(file, seen)
    return reading.ok ? seen : reading.problems
  }

  return {
    first,
    read,
    async isUnfinished() {
      const seen = await readTextNow(file)
      return typeof seen !== 'string' || isUnfinished(file, seen, known)
    },
    async save({ text, by }, expected, end) {
      const { version = 0, format = 'yaml', text: before = expected.text } = found ?? {}
      if (before !== expected.text) return 'conflict'
      const isEdit = by === fileAuthor
      const document = { name, format: isEdit ? ownFormat : format, text, version }
      const saved = await documents.replace(document, { notes: isEdit ? toNotes(text) : [], steps: end })
      if (!saved) return 'conflict'
      if (isEdit) known = text
      unannounced = true
      return 'recorded'
    },
    async settle() {
      if (!unannounced) return
      unannounced = false
      await shared.announce()
    },
  }
}

function toText({ format, text }: Pick<StoredDocument, 'format' | 'text'>): ConfigText {
  return { file: `the shared configuration.${format}`, text }
}

function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
