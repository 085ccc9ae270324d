import { toAnswer } from './cancel.ts'
import type { Terminal } from './terminal.ts'
import { wrap } from './width.ts'

/** Prints a text page by page at a terminal. Returns false if the user stopped before the end. */
export async function talkPaged(terminal: Terminal, text: string): Promise<boolean> {
  const { columns = 80, rows = 24 } = process.stderr
  const lines = text.split('\n').flatMap((line) => (line === '' ? [''] : wrap(line, columns)))
  const room = Math.max(4, rows - 4)
  if (!terminal.interactive || lines.length <= room) {
    terminal.talk(text)
    return true
  }
  for (let from = 0; from < lines.length; from += room) {
    const to = Math.min(from + room, lines.length)
    terminal.talk(lines.slice(from, to).join('\n'))
    if (to < lines.length && !(await showsMore(`Lines ${from + 1} to ${to} of ${lines.length}. Show more?`)))
      return false
  }
  return true
}

async function showsMore(message: string): Promise<boolean> {
  const prompts = await import('@clack/prompts')
  return toAnswer(await prompts.confirm({ message, initialValue: true, output: process.stderr }))
}

/** Asks at a terminal. Returns true without a terminal: a script confirms by running the command. */
export async function confirm(terminal: Terminal, question: string): Promise<boolean> {
  if (!terminal.interactive) return true
  const prompts = await import('@clack/prompts')
  const agreed = toAnswer(await prompts.confirm({ message: question, initialValue: false, output: process.stderr }))
  if (!agreed) terminal.talk('Nothing was changed.')
  return agreed
}
