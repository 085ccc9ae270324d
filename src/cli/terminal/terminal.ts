import { createColors } from 'picocolors'
import { toVisible, toVisibleJson } from '../../shared/visible.ts'
import { toRunnable } from './connect-line.ts'
import { cut } from './width.ts'

type Colours = ReturnType<typeof createColors>

/** Where a command's words go: the answer to standard output, all talk to standard error. */
export type Terminal = {
  readonly json: boolean
  /** Colours of the answer; of the talk. They do nothing when nobody looks. */
  readonly colours: Colours
  readonly talkColours: Colours
  /** Columns of the answer's terminal, if it is one. */
  readonly width: number | undefined
  /** Somebody sits there who can be asked. */
  readonly interactive: boolean
  /** The one answer of a command: a document for programs, text for people. */
  answer(document: unknown, toText: () => string): void
  /** One line of an answer that goes on: a document for programs, text for people. */
  line(document: unknown, text: string): void
  talk(line: string): void
  /** What people usually do now. */
  next(step: string): void
  /** Shows after a second that something goes on; `stop` takes it away again. */
  spin(message: string): Spinner
}

export type Spinner = {
  /** What it is doing now, with its own count of seconds; without a terminal a line at most every ten seconds. */
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

/** The last net, behind whoever made the line: a terminal obeys nothing in it but colours. */
function toSafe(text: string): string {
  return text
    .split(/(\u001b\[\d{1,2}m)/)
    .map((piece, index) => (index % 2 === 1 ? piece : toVisible(piece)))
    .join('')
}

/** https://no-color.org, and FORCE_COLOR for those who pipe on purpose. */
function hasColours(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0'
  return Boolean(stream.isTTY) && env.TERM !== 'dumb'
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/**
 * Our own, because the one of @clack/prompts takes standard input into raw mode and swallows SIGINT:
 * Ctrl+C must end the command, and with it the call that it waits for.
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
