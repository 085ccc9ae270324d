import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import { toChangedLines } from '../../shared/line-difference.ts'
import { toVisible } from '../../shared/visible.ts'
import { confirm } from './confirm.ts'
import type { Terminal } from './terminal.ts'

/** A scripted editor could repeat the same mistake for ever. */
const mostRounds = 50

export type Editing<Checked, Saved> = {
  readonly terminal: Terminal
  /** Name of the temporary file; editors detect the format by its extension. */
  readonly name: string
  readonly text: string
  /** Start of a comment in this format; undefined for JSON, which has no comments. */
  readonly comment: string | undefined
  readonly yes: boolean
  /** Returns the parsed value, or the problems. */
  check(text: string): { readonly value: Checked } | { readonly problems: readonly string[] }
  save(value: Checked, text: string): Promise<Saved>
}

/**
 * Opens a text in the editor, shows the changes, and saves it. After a mistake the editor opens again with the problems on
 * top. Returns undefined if nothing was changed. The temporary file is kept until the text is saved.
 */
export async function editText<Checked, Saved>(editing: Editing<Checked, Saved>): Promise<Saved | undefined> {
  const { terminal, text, yes } = editing
  const file = join(await mkdtemp(join(tmpdir(), 'sallyport-')), editing.name)
  let current = text
  let problems: readonly string[] = []
  for (let round = 0; round < mostRounds; round++) {
    await write(file, withProblems(current, problems, editing.comment))
    await runEditor(terminal, file, current !== text)
    const typed = withoutProblems(await readFile(file, 'utf8'), editing.comment)
    if (typed === text || typed.trim() === '') {
      await rm(dirname(file), { recursive: true })
      terminal.talk('Nothing was changed.')
      return undefined
    }
    const isSame = problems.length > 0 && typed === current
    if (isSame) throw keeping(new GatewayError('request-invalid', `Not saved: ${problems.join('; ')}`), file)
    current = typed
    const checked = editing.check(typed)
    problems = 'problems' in checked ? checked.problems : []
    if (!('value' in checked)) {
      printProblems(terminal, problems)
      continue
    }
    terminal.talk(toChanges(text, typed))
    if (!yes && !(await confirm(terminal, 'Save this?')))
      throw keeping(new GatewayError('request-invalid', 'Not saved'), file)
    try {
      const saved = await editing.save(checked.value, typed)
      await rm(dirname(file), { recursive: true })
      return saved
    } catch (error) {
      const failure = toGatewayError(error)
      if (failure.entry.http !== 400) throw keeping(failure, file)
      problems = [failure.message]
      printProblems(terminal, problems)
    }
  }
  throw keeping(new GatewayError('request-invalid', `Not saved: ${problems.join('; ')}`), file)
}

function keeping(error: GatewayError, file: string): GatewayError {
  const message = `${error.message}. Your text is in ${file}`
  return new GatewayError(error.code, message, { ...error.details, file }, { cause: error })
}

function printProblems(terminal: Terminal, problems: readonly string[]): void {
  for (const problem of problems) terminal.talk(terminal.talkColours.red(toVisible(problem)))
}

/** Readable only by this user: a definition may contain confidential addresses or headers. */
async function write(file: string, text: string): Promise<void> {
  const handle = await open(file, 'w', 0o600)
  try {
    await handle.writeFile(text)
  } finally {
    await handle.close()
  }
}

const mark = '!'

/** `#! port: must be a number` */
function withProblems(text: string, problems: readonly string[], comment: string | undefined): string {
  if (comment === undefined || problems.length === 0) return text
  const advice = 'Correct the text and save it, or save it unchanged to cancel. These lines are removed.'
  const lines = [...problems.flatMap((problem) => problem.split('\n')), advice]
  return [...lines.map((line) => `${comment}${mark} ${toVisible(line)}`), text].join('\n')
}

function withoutProblems(text: string, comment: string | undefined): string {
  if (comment === undefined) return text
  const lines = text.split('\n')
  const first = lines.findIndex((line) => !line.startsWith(`${comment}${mark}`))
  return first <= 0 ? text : lines.slice(first).join('\n')
}

const shownContext = 3
const leftOut = '    …'

/** Removed and added lines; long unchanged parts are left out. */
function toChanges(before: string, after: string): string {
  const lines = toChangedLines(before.trimEnd().split('\n').map(toVisible), after.trimEnd().split('\n').map(toVisible))
  const isNear = lines.map((_, index) =>
    lines.slice(Math.max(0, index - shownContext), index + shownContext + 1).some((line) => !line.startsWith('    ')),
  )
  const shown: string[] = []
  for (const [index, line] of lines.entries()) {
    if (isNear[index]) shown.push(line)
    else if (shown.at(-1) !== leftOut) shown.push(leftOut)
  }
  return shown.join('\n')
}

async function runEditor(terminal: Terminal, file: string, hasWork: boolean): Promise<void> {
  const [command, ...args] = findEditor(process.env)
  // If a program reads standard output, the editor uses standard error.
  const output = process.stdout.isTTY && !terminal.json ? 1 : 2
  // Ctrl+C must reach only the editor.
  const ignore = () => {}
  process.on('SIGINT', ignore)
  const child = spawn(command, [...args, file], { stdio: [0, output, 2] })
  const ended = await once(child, 'close')
    .catch((error: unknown) => {
      const reason = error instanceof Error && 'code' in error ? String(error.code) : 'it could not be started'
      throw wrong(`The editor ${command} could not be started (${reason}): set VISUAL or EDITOR`)
    })
    .finally(() => process.off('SIGINT', ignore))
  const [code, signal]: (number | string | null)[] = ended
  if (code === 0) return
  throw wrong(`The editor ${command} ended with ${code ?? signal}; nothing was saved`)

  function wrong(message: string): GatewayError {
    const failure = new GatewayError('request-invalid', message)
    return hasWork ? keeping(failure, file) : failure
  }
}

/** `VISUAL`, else `EDITOR`, else `vi` or `notepad`. */
export function findEditor(env: NodeJS.ProcessEnv): readonly [string, ...string[]] {
  const named = env.VISUAL || env.EDITOR
  if (named === undefined || named.trim() === '') return [process.platform === 'win32' ? 'notepad' : 'vi']
  return splitCommand(named)
}

/** Splits words like a shell, with quotes and backslashes, but without variables and other shell syntax. */
export function splitCommand(text: string): readonly [string, ...string[]] {
  const words: string[] = []
  let word: string | undefined
  let quote: string | undefined
  const characters = [...text.trim()]
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] ?? ''
    if (character === '\\' && quote !== "'" && process.platform !== 'win32') {
      word = `${word ?? ''}${characters[++index] ?? ''}`
    } else if (quote !== undefined) {
      if (character === quote) quote = undefined
      else word = `${word ?? ''}${character}`
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = `${word ?? ''}${character}`
  }
  if (word !== undefined) words.push(word)
  const [command, ...args] = words
  if (quote !== undefined || command === undefined || command === '')
    throw new GatewayError('request-invalid', `VISUAL or EDITOR is not a valid command: ${toVisible(text)}`)
  return [command, ...args]
}
