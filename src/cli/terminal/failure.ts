import { type GatewayError, toErrorBody } from '../../contract/errors.ts'
import { toVisible } from '../../shared/visible.ts'
import { toRunnable } from './connect-line.ts'
import type { Terminal } from './terminal.ts'

/** One failure, said once: as the document that programs read, or as a sentence and what to do about it. */
export function printFailure(terminal: Terminal, error: GatewayError, hint: string = error.entry.hint): void {
  if (terminal.json) {
    const { error: body } = toErrorBody(error)
    terminal.answer({ error: { ...body, hint } }, () => '')
    return
  }
  const { red, dim } = terminal.talkColours
  terminal.talk(`${red('error:')} ${toVisible(error.message)}`)
  terminal.talk(dim(`       ${toRunnable(toVisible(hint))}`))
}
