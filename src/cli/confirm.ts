import type { Terminal } from './terminal.ts'

/** Asks where somebody can answer; scripts have said what they want by running the command. */
export async function confirm(terminal: Terminal, question: string): Promise<boolean> {
  if (!terminal.interactive) return true
  const prompts = await import('@clack/prompts')
  return (await prompts.confirm({ message: question, initialValue: false, output: process.stderr })) === true
}
