import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { GatewayError } from '../contract/errors.ts'
import { findFormat } from '../documents/parse.ts'
import type { DocumentStore, StoredDocument, StoredNote } from '../storage/tables/documents.ts'
import { findCut, isUnfinished } from './changes.ts'
import type { ConfigProblem } from './problems.ts'
import { parseConfig } from './read.ts'
import { type ConfigSource, type ConfigText, look, type Unreadable } from './source.ts'

export type SharedConfig = {
  readonly documents: DocumentStore
  /** Returns when the other gateways have read it. */
  announce(): Promise<void>
  /** Somebody else may have changed it. */
  onChange(listener: () => Promise<void>): () => void
  /** The gateway has just made the file itself: nobody wants it instead of what the others use. */
  readonly fileIsNew: boolean
}

const name = 'config'
/** Which text was last taken over from any file, and what each gateway's own file last said. */
const lastNote = 'config-file'
const noteOf = (file: string) => `config-file:${hostname()}:${file}`

/**
 * The text in force lives in the database. The file beside a gateway is one way to change it: taken over when somebody
 * edits it while running, and at a start if it says something else than it did before.
 */
export function createSharedSource(file: string, started: string, shared: SharedConfig): ConfigSource {
  const { documents } = shared
  /** What this gateway's file last said. */
  let known: string | undefined
  let found: StoredDocument | undefined
  let unannounced = false

  async function read(): Promise<ConfigText | Unreadable> {
    const problems = await takeOverFile()
    if (problems) return { problems }
    found = await documents.find(name)
    return found ? toText(found, !unannounced) : { file, text: started }
  }

  /** What is wrong with the file, if it was edited and is not right. */
  async function takeOverFile(): Promise<readonly ConfigProblem[] | undefined> {
    const seen = await look(file)
    known ??= await findKnown(seen)
    if (seen === known) return undefined
    if (typeof seen !== 'string') return [seen]
    const cut = findCut(file, seen, known)
    if (cut) return [cut]
    const reading = parseConfig(file, seen)
    if (!reading.ok) return reading.problems
    await takeOver(seen)
    known = seen
    return undefined
  }

  /** At the start: the text itself if it is not to be taken over, else one that it differs from. */
  async function findKnown(seen: string | ConfigProblem): Promise<string> {
    if (typeof seen !== 'string') return started
    const [document, own, last] = await Promise.all([name, noteOf(file), lastNote].map((each) => documents.find(each)))
    if (!document) return ''
    const isOld = shared.fileIsNew || (own ?? last)?.text === toDigest(seen)
    if (isOld && !own) await documents.replace(document, [{ name: noteOf(file), text: toDigest(seen) }])
    return isOld ? seen : ''
  }

  async function takeOver(text: string): Promise<void> {
    const digest = toDigest(text)
    const notes: StoredNote[] = [noteOf(file), lastNote].map((each) => ({ name: each, text: digest }))
    for (let attempt = 0; attempt < 5; attempt++) {
      const version = (await documents.find(name))?.version ?? 0
      const format = findFormat(file) ?? 'yaml'
      if (await documents.replace({ name, format, text, version }, notes)) {
        unannounced = true
        return
      }
    }
    throw new GatewayError('config-conflict', 'The shared configuration keeps changing; nothing was saved')
  }

  return {
    read,
    async isUnfinished() {
      const seen = await look(file)
      return typeof seen !== 'string' || isUnfinished(file, seen, known ?? started)
    },
    async save({ text }, expected) {
      const { version = 0, format = findFormat(file) ?? 'yaml' } = found ?? {}
      if (found && found.text !== expected.text) return 'changed-meanwhile'
      const saved = await documents.replace({ name, format, text, version })
      unannounced ||= saved
      return saved ? 'saved' : 'changed-meanwhile'
    },
    async settle() {
      if (!unannounced) return
      unannounced = false
      await shared.announce()
    },
  }
}

function toText({ format, text }: StoredDocument, elsewhere: boolean): ConfigText {
  return { file: `the shared configuration.${format}`, text, elsewhere }
}

function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
