import type { Command } from 'commander'
import { z } from 'zod'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import { toRunnable } from '../../terminal/connect-line.ts'
import { exit } from '../../terminal/exit.ts'
import { wholeNumber } from '../../terminal/number.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { wrapWords } from '../../terminal/width.ts'
import { addCommand, type Run } from '../command.ts'
import type { Finding } from './finding.ts'

const Input = z.object({
  config: z.string().optional(),
  port: wholeNumber({ min: 0, max: 65_535 }).optional(),
})

export function addDoctor(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'doctor',
    summary: 'find problems and print how to fix them; works with and without a running gateway',
    options: [
      ['--config <file>', 'configuration file to check (default: the file that serve would use)'],
      ['--port <number>', 'port to check (default: the configured port)'],
    ],
    examples: ['sallyport doctor', 'sallyport doctor --config sallyport.yaml --json'],
    input: Input,
    async run(context, input) {
      const { examine } = await import('./examine.ts')
      const findings = await examine(context, input)
      const healthy = findings.every((finding) => finding.status !== 'problem')
      context.terminal.answer({ healthy, findings }, () => renderFindings(context.terminal, findings))
      return healthy ? exit.done : exit.failed
    },
  })
}

/** The message of a check with a longer name is printed on the next line. */
const widestCheck = 20

function renderFindings(terminal: Terminal, findings: readonly Finding[]): string {
  const { green, yellow, red, cyan, dim } = terminal.colours
  const marks = { ok: green('ok     '), note: cyan('note   '), warning: yellow('warning'), problem: red('problem') }
  const longest = Math.max(...findings.map((finding) => finding.check.length))
  const width = terminal.width === undefined ? longest : Math.min(longest, widestCheck)
  const left = ' '.repeat(width + 11)
  const fitting = (text: string) =>
    text
      .split('\n')
      .flatMap((line) => (terminal.width === undefined ? [line] : wrapWords(line, terminal.width - left.length)))
  const lines = findings.flatMap(({ check, status, message, fix }) => {
    const [first = '', ...rest] = fitting(toVisible(message))
    const name = toVisible(check)
    const told =
      name.length > width
        ? [`${marks[status]}  ${name}`, left + first]
        : [`${marks[status]}  ${name.padEnd(width)}  ${first}`]
    const mend = fix === null ? [] : fitting(`fix: ${toRunnable(toVisible(fix))}`)
    return [...told, ...rest.map((line) => left + line), ...mend.map((line) => dim(left + line))]
  })
  const problems = findings.filter((finding) => finding.status === 'problem').length
  const summary = problems === 0 ? green('No problems.') : red(`${countOf(problems, 'problem')}.`)
  return [...lines, '', summary].join('\n')
}
