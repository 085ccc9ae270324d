import { GatewayError } from '../contract/errors.ts'
import type { Unit } from '../storage/unit.ts'
import { findCut, isUnfinished } from './changes.ts'
import type { ConfigProblem } from './problems.ts'
import { readText } from './read.ts'
import { saveText } from './save.ts'

/** A text of the configuration; the name of its file tells what it is written in. */
export type ConfigText = { readonly file: string; readonly text: string }

/** The author of a change made by editing the file: the system does not tell which person did it. */
export const fileAuthor = 'file'

/** A text and who wrote it: a principal such as `user:ada`, or `file`. */
export type AuthoredText = ConfigText & {
  readonly by: string
  /** Another gateway on the same database made this change and recorded it. */
  readonly elsewhere?: boolean
}

export type Unreadable = { readonly problems: readonly ConfigProblem[] }

/** `recorded`: saved, and the outcome of the change was recorded in the same commit. */
export type Saved = 'saved' | 'recorded' | 'changed-meanwhile'

/** Where the text in force is read and saved: the file, or the database that several gateways share. */
export type ConfigSource = {
  /** The text to start with, or what is wrong with it. */
  first(): Promise<ConfigText | Unreadable>
  /** The newest text, or what is wrong with it. */
  read(inForce: ConfigText): Promise<AuthoredText | Unreadable>
  /** Whether somebody may be in the middle of writing the file. */
  isUnfinished(inForce: ConfigText): Promise<boolean>
  /** `end` records the outcome. A source in the database commits it together with the text. */
  save(next: AuthoredText, expected: ConfigText, end: Unit): Promise<Saved>
  /** After each turn, when nobody waits for it any more. */
  settle(): Promise<void>
}

export function createFileSource(file: string): ConfigSource {
  return {
    async first() {
      const text = await readText(file)
      return typeof text === 'string' ? { file, text } : { problems: [text] }
    },
    async read(inForce) {
      const seen = await look(file)
      if (typeof seen !== 'string') return { problems: [seen] }
      const cut = findCut(file, seen, inForce.text)
      return cut ? { problems: [cut] } : { file, text: seen, by: fileAuthor }
    },
    async isUnfinished(inForce) {
      const seen = await look(file)
      return typeof seen !== 'string' || isUnfinished(file, seen, inForce.text)
    },
    async save({ text, by }, expected) {
      if (by === fileAuthor) return 'saved' // it was read from there
      return saveText({ file, text, expected: expected.text })
    },
    async settle() {},
  }
}

/** A file that went away while running is one more thing that is wrong with it. */
export async function look(file: string): Promise<string | ConfigProblem> {
  try {
    return await readText(file)
  } catch (error) {
    const message = error instanceof GatewayError ? error.message : 'cannot be read'
    return { file, line: 1, key: '', message: `${message}; the configuration in force stays` }
  }
}
