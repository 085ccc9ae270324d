import { GatewayError } from '../contract/errors.ts'
import type { ConfigInForce } from '../storage/tables/config-changes.ts'
import type { Unit } from '../storage/unit.ts'
import { findCut, isUnfinished } from './changes.ts'
import type { ConfigProblem } from './problems.ts'
import { readText } from './read.ts'
import { saveText } from './save.ts'

/** A configuration text. The extension of the file name is its format. */
export type ConfigText = { readonly file: string; readonly text: string }

/** The author of a change made by editing the file: the system does not report which person did it. */
export const fileAuthor = 'file'

/** The author of a text in the database that no gateway saved. */
export const databaseAuthor = 'database'

/** A text with its author: a principal such as `user:ada`, `file` or `database`. */
export type AuthoredText = ConfigText & {
  readonly by: string
  /** The configuration that the gateways on this database recorded last, read in the same moment as the text. */
  readonly recorded?: ConfigInForce | undefined
  /** Another gateway on the same database made this change and recorded it. */
  readonly elsewhere?: boolean
}

export type Unreadable = { readonly problems: readonly ConfigProblem[] }

/** `recorded`: saved, and the outcome of the change was recorded in the same commit. */
export type Saved = 'saved' | 'recorded' | 'conflict'

/** The storage of the text in force: a file, or the database that several gateways share. */
export type ConfigSource = {
  /** The text at the start, or its problems. */
  first(): Promise<ConfigText | Unreadable>
  /** The newest text, or its problems. */
  read(inForce: ConfigText): Promise<AuthoredText | Unreadable>
  /** Whether a program may still be writing the file. */
  isUnfinished(inForce: ConfigText): Promise<boolean>
  /** `end` records the outcome. A source in the database commits it together with the text. */
  save(next: AuthoredText, expected: ConfigText, end: Unit): Promise<Saved>
  /** Called after each turn, outside the queue of changes. */
  settle(): Promise<void>
}

export function createFileSource(file: string): ConfigSource {
  return {
    async first() {
      const text = await readText(file)
      return typeof text === 'string' ? { file, text } : { problems: [text] }
    },
    async read(inForce) {
      const seen = await readTextNow(file)
      if (typeof seen !== 'string') return { problems: [seen] }
      const cut = findCut(file, seen, inForce.text)
      return cut ? { problems: [cut] } : { file, text: seen, by: fileAuthor }
    },
    async isUnfinished(inForce) {
      const seen = await readTextNow(file)
      return typeof seen !== 'string' || isUnfinished(file, seen, inForce.text)
    },
    async save({ text, by }, expected) {
      if (by === fileAuthor) return 'saved' // an edit of the file is in the file already
      return saveText({ file, text, expected: expected.text })
    },
    async settle() {},
  }
}

/** The text of a file. A file that was removed while the gateway runs is a problem, not an error. */
export async function readTextNow(file: string): Promise<string | ConfigProblem> {
  try {
    return await readText(file)
  } catch (error) {
    const message = error instanceof GatewayError ? error.message : 'cannot be read'
    return { file, line: 1, key: '', message: `${message}; the current configuration stays in force` }
  }
}
