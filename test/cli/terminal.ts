import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { until } from './support.ts'

const run = promisify(execFile)

export const hasTmux = await run('tmux', ['-V']).then(
  () => true,
  () => false,
)

export type Pane = {
  press(...keys: string[]): Promise<void>
  type(text: string): Promise<void>
  /** The screen, once it fits. */
  shows(pattern: RegExp): Promise<string>
  [Symbol.asyncDispose](): Promise<void>
}

/** A real terminal of 80 columns and 24 rows, in which one command runs. */
export async function openTerminal(command: string): Promise<Pane> {
  const socket = `sallyport-${process.pid}-${Math.random().toString(36).slice(2)}`
  const tmux = (...words: string[]) => run('tmux', ['-L', socket, '-f', '/dev/null', ...words])
  // What is left is what the command says when it has given the terminal back, and how it ended.
  const line = `env -u CI NO_COLOR=1 ${command}; echo "ended with $?, $(stty -a | grep -o -- '-\\?icanon')"; cat`
  await tmux('new-session', '-d', '-x', '80', '-y', '24', line)
  return {
    press: async (...keys) => void (await tmux('send-keys', ...keys)),
    type: async (text) => void (await tmux('send-keys', '-l', text)),
    async shows(pattern) {
      let screen = ''
      const look = async () => {
        screen = (await tmux('capture-pane', '-p')).stdout
        return pattern.test(screen) ? screen : undefined
      }
      return until(look).catch(() => expect(screen).toMatch(pattern) as never)
    },
    [Symbol.asyncDispose]: async () => void (await tmux('kill-server')),
  }
}
