import { CommanderError } from 'commander'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { setPlainMessages } from '../contract/issues.ts'
import { type Run, UsageError } from './commands/command.ts'
import { createProgram, toPath } from './program.ts'
import { Cancelled } from './terminal/cancel.ts'
import { exit } from './terminal/exit.ts'
import { printFailure } from './terminal/failure.ts'
import { endWithReader } from './terminal/pipes.ts'
import { createTerminal, type Terminal } from './terminal/terminal.ts'

/** Runs one command line (without the names of node and script) and returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const end = argv.indexOf('--')
  const words = end === -1 ? argv : argv.slice(0, end)
  const run: Run = { code: exit.done, trailing: end === -1 ? [] : argv.slice(end + 1) }
  endWithReader()
  setPlainMessages()
  try {
    await createProgram(run).parseAsync(words, { from: 'user' })
    return run.code
  } catch (error) {
    // Not from the parsed options: an invalid command line must also fail with a JSON document.
    const terminal = createTerminal(words.includes('--json'))
    return error instanceof CommanderError ? endByCommander(terminal, error, words) : endByError(terminal, error)
  }
}

function endByCommander(terminal: Terminal, ended: CommanderError, words: readonly string[]): number {
  if (ended.exitCode === 0) return exit.done
  // Without a command, Commander has already printed the help on standard error.
  const isHelp = ended.code === 'commander.help'
  if (isHelp && !terminal.json) return exit.usage
  const message = ended.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ')
  const failure = new GatewayError('request-invalid', isHelp ? 'No command was given' : message)
  printFailure(terminal, failure, toUsageHint(words))
  return exit.usage
}

function endByError(terminal: Terminal, error: unknown): number {
  const failure = toGatewayError(error)
  if (failure instanceof Cancelled) {
    terminal.talk(`${failure.message}.`)
    return exit.interrupted
  }
  if (failure instanceof UsageError) printFailure(terminal, failure, `See \`${toPath(failure.command)} --help\`.`)
  else printFailure(terminal, failure)
  if (failure.code === 'internal' && process.env.SALLYPORT_LOG === 'debug') terminal.talk(String(failure.stack))
  return failure.entry.exit
}

function toUsageHint([noun, verb]: readonly string[]): string {
  const describesServer = noun === 'servers' && (verb === 'add' || verb === 'validate')
  if (describesServer) return `Put -- before the command of a server: sallyport servers ${verb} NAME -- COMMAND`
  return 'See `sallyport --help`.'
}
