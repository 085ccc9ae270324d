import { GatewayError } from '../contract/errors.ts'
import { findCut, isUnfinished } from './changes.ts'
import type { ConfigProblem } from './problems.ts'
import { readText } from './read.ts'
import { saveText } from './save.ts'

/** A text of the configuration; the name of its file tells what it is written in. */
export type ConfigText = {
  readonly file: string
  readonly text: string
  /** Another gateway changed it. */
  readonly elsewhere?: boolean
}

export type Unreadable = { readonly problems: readonly ConfigProblem[] }

/** Where the text in force is read and saved: the file, or the database that several gateways share. */
export type ConfigSource = {
  /** The newest text, or what is wrong with it. */
  read(inForce: ConfigText): Promise<ConfigText | Unreadable>
  /** A writer may be in the middle of it. */
  isUnfinished(inForce: ConfigText): Promise<boolean>
  save(next: ConfigText, expected: ConfigText): Promise<'saved' | 'changed-meanwhile'>
  /** After each turn, when nobody waits for it any more. */
  settle(): Promise<void>
}

export function createFileSource(file: string): ConfigSource {
  return {
    async read(inForce) {
      const seen = await look(file)
      if (typeof seen !== 'string') return { problems: [seen] }
      const cut = findCut(file, seen, inForce.text)
      return cut ? { problems: [cut] } : { file, text: seen }
    },
    async isUnfinished(inForce) {
      const seen = await look(file)
      return typeof seen !== 'string' || isUnfinished(file, seen, inForce.text)
    },
    save: ({ text }, expected) => saveText({ file, text, expected: expected.text }),
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
