import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { findFormat } from '../documents/parse.ts'
import type { Storage } from '../storage/storage.ts'
import type { DocumentStore, StoredDocument, StoredNote } from '../storage/tables/documents.ts'
import { findCut, isUnfinished } from './changes.ts'
import type { ConfigProblem } from './problems.ts'
import { parseConfig, readText } from './read.ts'
import { type AuthoredText, type ConfigSource, type ConfigText, fileAuthor, look, type Unreadable } from './source.ts'

export type SharedConfig = {
  readonly documents: DocumentStore
  /** Returns when the other gateways have read it. */
  announce(): Promise<void>
  /** Somebody else may have changed it. */
  onChange(listener: () => Promise<void>): () => void
  /** The gateway has just made the file itself: nobody wants it instead of what the others use. */
  readonly fileIsNew: boolean
}

/** Gateways on one PostgreSQL have one configuration. */
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
/** Which text was last taken over from any file, and what each gateway's own file last said. */
const lastNote = 'config-file'
const noteOf = (file: string) => `config-file:${hostname()}:${file}`

type SharedSourceParts = {
  readonly file: string
  readonly shared: SharedConfig
  /** Who made the text that is in the database. */
  findAuthor(): Promise<string>
}

/**
 * The text in force is in the database. The file beside a gateway is one way to change it: a change by `file` when
 * somebody edits it while the gateway runs, and at a start if it differs from what it said before.
 */
export function createSharedSource({ file, shared, findAuthor }: SharedSourceParts): ConfigSource {
  const { documents } = shared
  const ownFormat = findFormat(file) ?? 'yaml'
  /** What this gateway's file last said. */
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

  /** Whether the file says what it said when this or another gateway last took it over. */
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
    found = await documents.find(name)
    // The others' change first: an edit of the file is made to what they have in force.
    if (found && found.text !== inForce.text) return { ...toText(found), by: await findAuthor(), elsewhere: true }
    const edited = await findEdit()
    if (edited !== undefined && typeof edited !== 'string') return { problems: edited }
    if (edited === inForce.text) await noteSame(edited)
    if (edited === undefined) return { ...inForce, by: fileAuthor }
    return { ...toText({ format: ownFormat, text: edited }), by: fileAuthor }
  }

  /** Somebody wrote into the file what is in force already: from now on the file counts as taken over. */
  async function noteSame(text: string): Promise<void> {
    if (found && (await documents.replace(found, { notes: toNotes(text) }))) known = text
  }

  /** The text of the file if somebody edited it, or what is wrong with it. */
  async function findEdit(): Promise<string | readonly ConfigProblem[] | undefined> {
    const seen = await look(file)
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
      const seen = await look(file)
      return typeof seen !== 'string' || isUnfinished(file, seen, known)
    },
    async save({ text, by }, expected, end) {
      const { version = 0, format = 'yaml', text: before = expected.text } = found ?? {}
      if (before !== expected.text) return 'changed-meanwhile'
      const isEdit = by === fileAuthor
      const document = { name, format: isEdit ? ownFormat : format, text, version }
      const saved = await documents.replace(document, { notes: isEdit ? toNotes(text) : [], steps: end })
      if (!saved) return 'changed-meanwhile'
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
