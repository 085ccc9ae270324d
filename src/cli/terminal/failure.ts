import { type ErrorCode, type GatewayError, toErrorBody } from '../../contract/errors.ts'
import { toVisible } from '../../shared/visible.ts'
import { toRunnable } from './connect-line.ts'
import type { Terminal } from './terminal.ts'

/**
 * Prints an error as a JSON document with `--json`, else as a message and a hint. A hint of the command replaces the hint of
 * the table, which refers to the section of the code.
 */
export function printFailure(terminal: Terminal, error: GatewayError, ownHint?: string): void {
  const hint = ownHint ?? error.entry.hint
  if (terminal.json) {
    const { error: body } = toErrorBody(error)
    terminal.answer({ error: { ...body, hint } }, () => '')
    return
  }
  const { red, dim } = terminal.talkColours
  terminal.talk(`${red('error:')} ${toVisible(error.message)}`)
  terminal.talk(dim(`       ${toRunnable(toVisible(hint))}`))
  if (ownHint === undefined) printMore(terminal, error.code)
}

/** The command that prints the section of a code. */
export function printMore(terminal: Terminal, code: ErrorCode): void {
  terminal.talk(terminal.talkColours.dim(`       More: ${toRunnable(`sallyport explain ${code}`)}`))
}
