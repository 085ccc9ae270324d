import { GatewayError } from '../contract/errors.ts'
import { toAnswer } from './cancel.ts'
import type { Terminal } from './terminal.ts'

const mostBytes = 65_536

/** A value that must not be seen: from standard input, or from somebody who types it blindly. */
export async function readHidden(terminal: Terminal, message: string): Promise<string> {
  const value = terminal.interactive ? await ask(message) : await readInput()
  if (value === '')
    throw new GatewayError('request-invalid', 'There is no value: pipe it into this command, or type it')
  return value
}

async function ask(message: string): Promise<string> {
  const prompts = await import('@clack/prompts')
  return toAnswer(await prompts.password({ message, output: process.stderr }))
}

/** Whoever pipes a file or an echo does not mean its last line break. */
async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    const piece = Buffer.from(chunk)
    bytes += piece.length
    if (bytes > mostBytes) throw new GatewayError('request-invalid', `The value is longer than ${mostBytes} bytes`)
    chunks.push(piece)
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}
