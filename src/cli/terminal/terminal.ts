import { createColors } from 'picocolors'
import { toVisible, toVisibleJson } from '../../shared/visible.ts'
import { toRunnable } from './connect-line.ts'
import { cut } from './width.ts'

type Colours = ReturnType<typeof createColors>

/** Output of a command: the answer goes to standard output, all messages go to standard error. */
export type Terminal = {
  readonly json: boolean
  /** Colours for standard output; `talkColours` for standard error. They have no effect without a terminal. */
  readonly colours: Colours
  readonly talkColours: Colours
  /** Columns of the terminal; undefined if standard output is not a terminal. */
  readonly width: number | undefined
  /** Standard input and error are a terminal, so the command can ask. */
  readonly interactive: boolean
  /** Prints the answer of a command: JSON with `--json`, else text. */
  answer(document: unknown, toText: () => string): void
  /** Prints one line of a continuous answer: JSON with `--json`, else text. */
  line(document: unknown, text: string): void
  talk(line: string): void
  /** Prints a suggestion for the next command. */
  next(step: string): void
  /** Shows a spinner after one second; `stop` removes it. */
  spin(message: string): Spinner
}

export type Spinner = {
  /** Replaces the message and the count of seconds. Without a terminal, prints a line at most every ten seconds. */
  update(message: string): void
  stop(): void
}

export function createTerminal(json: boolean): Terminal {
  const { stdin, stdout, stderr, env } = process
  const talkColours = createColors(hasColours(stderr, env))
  return {
    json,
    colours: createColors(!json && hasColours(stdout, env)),
    talkColours,
    width: stdout.isTTY ? stdout.columns || 80 : undefined,
    interactive: !json && Boolean(stdin.isTTY && stderr.isTTY) && !env.CI,
    answer(document, toText) {
      stdout.write(`${json ? toVisibleJson(JSON.stringify(document, null, 2)) : toSafe(toText())}\n`)
    },
    line(document, text) {
      stdout.write(`${json ? toVisibleJson(JSON.stringify(document)) : toSafe(text.replace(/[\t\r\n]+/g, ' '))}\n`)
    },
    talk: (line) => void stderr.write(`${toSafe(line)}\n`),
    next: (step) => void stderr.write(`${talkColours.dim(`Next: ${toRunnable(toVisible(step))}`)}\n`),
    spin: (message) => (stderr.isTTY && !env.CI ? startSpinner(toVisible(message)) : createProgressLines(stderr)),
  }
}

/** Removes all terminal control sequences except colours, in case a caller missed one. */
function toSafe(text: string): string {
  return text
    .split(/(\u001b\[\d{1,2}m)/)
    .map((piece, index) => (index % 2 === 1 ? piece : toVisible(piece)))
    .join('')
}

/** NO_COLOR (https://no-color.org) turns colours off, FORCE_COLOR turns them on for pipes. */
function hasColours(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0'
  return Boolean(stream.isTTY) && env.TERM !== 'dumb'
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/**
 * Not the spinner of @clack/prompts: it sets raw mode on standard input and ignores SIGINT, but Ctrl+C must end the
 * command and cancel the call that it waits for.
 */
function startSpinner(first: string): Spinner {
  const startedAt = performance.now()
  let message: string | undefined
  let frame = 0
  let shown = false
  const timer = setInterval(() => {
    const elapsed = performance.now() - startedAt
    if (elapsed < 1000) return
    shown = true
    const line = message ?? `${first} ${Math.floor(elapsed / 1000)} s`
    process.stderr.write(`\r\x1b[2K${frames[frame++ % frames.length]} ${cut(line, (process.stderr.columns ?? 80) - 3)}`)
  }, 100)
  timer.unref()
  return {
    update(next) {
      message = toVisible(next)
    },
    stop() {
      clearInterval(timer)
      if (shown) process.stderr.write('\r\x1b[2K')
    },
  }
}

const lineEvery = 10_000

function createProgressLines(stderr: NodeJS.WriteStream): Spinner {
  let toldAt = performance.now()
  return {
    update(message) {
      if (performance.now() - toldAt < lineEvery) return
      toldAt = performance.now()
      stderr.write(`${toVisible(message)}\n`)
    },
    stop() {},
  }
}
