import { GatewayError } from '../contract/errors.ts'
import { toAnswer } from './cancel.ts'
import type { Terminal } from './terminal.ts'

let lines: Promise<string[]> | undefined

/** What must not be seen: asked for without showing it, or the next line of standard input where nobody can be asked. */
export async function readSecret(terminal: Terminal, question: string): Promise<string> {
  if (terminal.interactive) return ask(question)
  lines ??= readLines()
  const line = (await lines).shift()
  if (line === undefined || line === '')
    throw new GatewayError('request-invalid', `${question}: no line left on standard input`)
  return line
}

async function ask(question: string): Promise<string> {
  const prompts = await import('@clack/prompts')
  return toAnswer(await prompts.password({ message: question, output: process.stderr }))
}

async function readLines(): Promise<string[]> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8').split(/\r?\n/)
}
