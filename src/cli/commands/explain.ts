import type { Command } from 'commander'
import { z } from 'zod'
import { type ErrorCode, errorTable, GatewayError, isErrorCode } from '../../contract/errors.ts'
import { nearest } from '../../lib/text.ts'
import { toVisible } from '../../shared/visible.ts'
import { toRunnable } from '../terminal/connect-line.ts'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addCommand, type Run } from './command.ts'

export function addExplain(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'explain [code]',
    summary: 'what an error code means and what to do about it; without a code, a list of all codes',
    notes: ['It needs no gateway. A running gateway serves the same texts at /docs/errors.'],
    examples: ['sallyport explain approval-expired', 'sallyport explain', 'sallyport explain data-locked --json'],
    input: z.object({ code: z.string().optional() }),
    async run({ terminal }, { code }) {
      if (code === undefined) await listCodes(terminal)
      else await explainCode(terminal, getCode(code))
      return exit.done
    },
  })
}

/** The sections are loaded here, so that no other command pays for them. */
const loadSections = () => import('../../contract/error-sections/error-sections.ts')

async function listCodes(terminal: Terminal): Promise<void> {
  const { errorGroups, toSummary } = await loadSections()
  const items = errorGroups.flatMap(({ codes }) => codes).map((code) => ({ code, summary: toSummary(code) }))
  terminal.answer({ items }, () =>
    renderTable(
      items,
      [
        { title: 'code', value: ({ code }) => code },
        { title: 'meaning', value: ({ summary }) => summary, shrinks: true },
      ],
      terminal.width,
    ),
  )
}

async function explainCode(terminal: Terminal, code: ErrorCode): Promise<void> {
  const { describeNumbers, errorSections, toNumbers } = await loadSections()
  const { meaning, example, steps, guide } = errorSections[code]
  const { hint } = errorTable[code]
  const { bold, dim } = terminal.colours
  const document = { code, meaning, example, hint, steps, ...toNumbers(code), guide: `docs/guide/${guide}` }
  terminal.answer(document, () =>
    [
      `${bold(code)}\n`,
      `${meaning}\n`,
      ...(example === undefined ? [] : [`Example: ${dim(example)}\n`]),
      'What to do:',
      ...steps.map((step) => `  - ${toRunnable(step)}`),
      `\nAppears as: ${describeNumbers(code)}`,
      `Guide: docs/guide/${guide}`,
    ].join('\n'),
  )
}

function getCode(code: string): ErrorCode {
  if (isErrorCode(code)) return code
  const near = findNear(code)
  const suggestion =
    near.length > 0 ? `Did you mean ${near.join(' or ')}?` : '`sallyport explain` lists all error codes.'
  throw new GatewayError('not-found', `No error has the code ${toVisible(code)}. ${suggestion}`, { suggestions: near })
}

const mostSuggestions = 5

/** The code that was probably mistyped, then the codes that contain the word. */
function findNear(word: string): string[] {
  const codes = Object.keys(errorTable)
  const meant = nearest(word, codes)
  const containing = word.length < 3 ? [] : codes.filter((code) => code.includes(word.toLowerCase()))
  return [...new Set([...(meant === undefined ? [] : [meant]), ...containing])].slice(0, mostSuggestions)
}
