import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { programPath } from '../support/programs.ts'

export type SuiteEnd = { readonly code: number | null; readonly output: string }

/** One run of the official suite, as its users run it. */
export async function runSuite(args: readonly string[], env: Record<string, string> = {}): Promise<SuiteEnd> {
  const child = spawn(process.execPath, [programPath('test/conformance/official'), ...args], {
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  const [code]: (number | null)[] = await once(child, 'close')
  return { code: code ?? null, output }
}
