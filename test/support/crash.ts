import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Runs a program that kills itself at a numbered crash point. Returns the name of the point, or `ended`. */
export async function runToCrash(program: string, args: readonly string[], crashAt: string): Promise<string> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, SALLYPORT_CRASH_AT: crashAt },
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const [code, signal]: [number | null, string | null] = await once(child, 'exit').then(([a, b]) => [a, b])
  if (code === 0) return 'ended'
  const point = /crash point \d+: (.*)/.exec(errors)?.[1]
  if (signal === 'SIGKILL' && point !== undefined) return point
  throw new Error(`The program ended with ${code ?? signal}: ${errors}`)
}
