import { Readable, Writable } from 'node:stream'

/** One command line, and the process that it should find itself in. */
export type Order = {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly input: string
}

export type Outcome = { readonly code: number; readonly stdout: string; readonly stderr: string }

/**
 * Runs command lines of the built CLI one after the other, each with its own streams, variables and folder. Loading the
 * CLI takes a process thirty times as long as a usual command.
 */
const [script = '', bundle = ''] = process.argv.slice(2)
const { main }: { main(args: readonly string[]): Promise<number> } = await import(bundle)
process.argv = [process.execPath, script]
process.on('disconnect', () => process.exit())
process.on('message', async (order: Order) => void process.send?.(await run(order)))

async function run({ args, cwd, env, input }: Order): Promise<Outcome> {
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name]
  Object.assign(process.env, env)
  const [stdout, stderr] = [createCollector(), createCollector()]
  replace('stdin', Readable.from(input === '' ? [] : [Buffer.from(input)]))
  replace('stdout', stdout.stream)
  replace('stderr', stderr.stream)
  return { code: await main(args), stdout: stdout.text(), stderr: stderr.text() }
}

function replace(name: 'stdin' | 'stdout' | 'stderr', stream: Readable | Writable): void {
  Object.defineProperty(process, name, { value: stream, configurable: true })
}

function createCollector(): { stream: Writable; text(): string } {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      done()
    },
  })
  return { stream, text: () => Buffer.concat(chunks).toString('utf8') }
}
