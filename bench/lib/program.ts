import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** A process of the bench: a server, a proxy, a gateway. */
export type Program = { readonly pid: number; readonly url: string; stop(): Promise<void> }

export type ProgramOptions = {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** For programs that do not print their address. */
  readonly url?: string
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const readyMs = 30_000
const stopMs = 8000

/** Starts a script with this Node; ready when it prints a line with `ready` and its address. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { args, cwd, env = {} } = options
  const child = spawn(process.execPath, args, { cwd, env: { ...cleanEnvironment(), ...env }, stdio: 'pipe' })
  running.add(child)
  child.once('exit', () => running.delete(child))
  child.stdin.on('error', () => {})
  const said = collect(child)
  try {
    const url = options.url ?? (await ready(child))
    return { pid: child.pid ?? 0, url, stop: () => stop(child) }
  } catch (error) {
    await stop(child)
    throw new Error(`${args.join(' ')} did not start:\n${said()}`, { cause: error })
  }
}

/** Removes variables of Sallyport, so that the bench does not use the user's own gateway. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('SALLYPORT_'))
  return { ...Object.fromEntries(kept), NO_COLOR: '1' }
}

/** Reads all output, so that no pipe fills up; the last lines explain a failed start. */
function collect(child: ChildProcess): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-4000)
    })
  }
  return () => text
}

async function ready(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const limit = setTimeout(() => reject(new Error(`Not ready within ${readyMs} ms`)), readyMs)
  let text = ''
  child.stdout?.on('data', (chunk: string) => {
    text += chunk
    const url = /^(?:sallyport )?ready (http\S+)\n/m.exec(text)?.[1]
    if (url !== undefined) resolve(url)
  })
  child.once('exit', (code) => reject(new Error(`The program ended with code ${code}`)))
  return promise.finally(() => clearTimeout(limit))
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  const impatience = setTimeout(() => child.kill('SIGKILL'), stopMs)
  child.stdin?.end()
  child.kill('SIGTERM')
  await exited
  clearTimeout(impatience)
}

/** For programs that cannot choose a free port. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('No port')
  return address.port
}
