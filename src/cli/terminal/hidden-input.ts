import { GatewayError } from '../../contract/errors.ts'
import { toAnswer } from './cancel.ts'
import type { Terminal } from './terminal.ts'

const mostBytes = 65_536

/** Text from standard input that has not been used yet. */
const piped = new WeakMap<Terminal, string>()

/**
 * Reads a password or a secret from a hidden prompt, or without a terminal from standard input. `line` reads the next
 * line, so that a password can come before another value. `rest` reads all remaining text: a secret may have several lines.
 */
export async function readHidden(terminal: Terminal, question: string, part: 'line' | 'rest'): Promise<string> {
  const value = terminal.interactive ? await ask(question) : await takePiped(terminal, part)
  if (value !== '') return value
  const where = terminal.interactive ? 'the input is empty' : 'standard input contains no value'
  throw new GatewayError('request-invalid', `${question}: ${where}`)
}

async function ask(message: string): Promise<string> {
  const prompts = await import('@clack/prompts')
  return toAnswer(await prompts.password({ message, output: process.stderr }))
}

/** Reads a line at a terminal. */
export async function readLine(message: string): Promise<string> {
  const prompts = await import('@clack/prompts')
  const value = toAnswer(await prompts.text({ message, output: process.stderr }))
  if (value.trim() !== '') return value.trim()
  throw new GatewayError('request-invalid', `${message}: the input is empty`)
}

async function takePiped(terminal: Terminal, part: 'line' | 'rest'): Promise<string> {
  const text = piped.get(terminal) ?? (await readInput())
  const end = part === 'rest' ? -1 : text.indexOf('\n')
  piped.set(terminal, end === -1 ? '' : text.slice(end + 1))
  // The final line break of a file or of `echo` is not part of the value.
  return (end === -1 ? text : text.slice(0, end + 1)).replace(/\r?\n$/, '')
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    const piece = Buffer.from(chunk)
    bytes += piece.length
    if (bytes > mostBytes) throw new GatewayError('request-invalid', `Standard input is longer than ${mostBytes} bytes`)
    chunks.push(piece)
  }
  return Buffer.concat(chunks).toString('utf8')
}
