import { toAnswer } from './cancel.ts'
import type { Terminal } from './terminal.ts'

/** Asks where somebody can answer; scripts have said what they want by running the command. */
export async function confirm(terminal: Terminal, question: string): Promise<boolean> {
  if (!terminal.interactive) return true
  const prompts = await import('@clack/prompts')
  const agreed = toAnswer(await prompts.confirm({ message: question, initialValue: false, output: process.stderr }))
  if (!agreed) terminal.talk('Nothing was changed.')
  return agreed
}
