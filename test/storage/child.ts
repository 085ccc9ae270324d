import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { programPath } from '../support/programs.ts'
import type { Place } from './support.ts'

const program = programPath('test/storage/claiming-process')

export type ClaimingProcess = {
  readonly instance: string
  /** Calls whose claim was acknowledged so far. */
  readonly claimed: string[]
  /** Calls that a steady one asked for so far, and those that were refused. */
  readonly asked: string[]
  readonly refused: string[]
  reached(count: number): Promise<void>
  /** Stops it in the middle of whatever it does, as a machine without memory or a debugger would. */
  pause(): void
  resume(): void
  /** With -9, as the system does when memory runs out; resolves when it is gone and all it said was read. */
  kill(): Promise<void>
}

export async function startClaimingProcess(place: Place, mode: 'claim' | 'steady' | 'hold'): Promise<ClaimingProcess> {
  const child = spawn(process.execPath, [program, place.folder, mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, SALLYPORT_DATABASE_URL: place.databaseUrl ?? '' },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })
  const claimed: string[] = []
  const refused: string[] = []
  const asked: string[] = []
  const started = Promise.withResolvers<string>()
  let noticed = () => {}
  lines.on('line', (line) => {
    const [word, id = ''] = line.split(' ')
    if (word === 'instance') started.resolve(id)
    if (word === 'claimed') claimed.push(id)
    if (word === 'refused') refused.push(id)
    if (word === 'asked') asked.push(id)
    noticed()
  })
  const read = once(lines, 'close')
  child.once('exit', () => started.reject(new Error('The claiming process ended too early')))
  return {
    instance: await started.promise,
    claimed,
    asked,
    refused,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async reached(count) {
      while (claimed.length < count) await new Promise<void>((resolve) => (noticed = resolve))
    },
    async kill() {
      child.kill('SIGKILL')
      await read
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
