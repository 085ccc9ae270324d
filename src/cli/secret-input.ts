import { GatewayError } from '../contract/errors.ts'
import { toAnswer } from './cancel.ts'
import type { Terminal } from './terminal.ts'

/** What must not be seen: asked for without showing it, or the next line of standard input where nobody can be asked. */
export async function readSecret(terminal: Terminal, question: string): Promise<string> {
  if (terminal.interactive) return ask(question)
  const line = await terminal.nextLine()
  if (line === undefined || line === '')
    throw new GatewayError('request-invalid', `${question}: no line left on standard input`)
  return line
}

async function ask(question: string): Promise<string> {
  const prompts = await import('@clack/prompts')
  return toAnswer(await prompts.password({ message: question, output: process.stderr }))
}
