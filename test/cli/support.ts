import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { startGateway } from '../../src/http/serve.ts'
import { fixturePath } from '../fixtures/fixtures.ts'
import { bin, runInHost } from './hosts.ts'

export type Ended = { code: number | null; stdout: string; stderr: string; json(): Fields }
export type Fields = Record<string, unknown>

type RunOptions = { cwd?: string; env?: NodeJS.ProcessEnv; input?: string }

/** Commands that go on until they are stopped, or that end their process themselves. */
const ownProcess = new Set(['serve', 'stdio', '__complete'])

/** Runs a command to its end and gives its two outputs and its exit code. */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  if (args.some((word) => ownProcess.has(word))) return runProcess(args, options)
  const { cwd = tmpdir(), env, input = '' } = options
  return toEnded(await runInHost({ args, cwd, env: toEnvironment(env), input }))
}

/** Runs a command as people do: a process of its own. */
export async function runProcess(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = startCli(args, options)
  child.stdin?.end(options.input ?? '')
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  const [code]: (number | null)[] = await once(child, 'close')
  return toEnded({ code: code ?? null, stdout: stdout(), stderr: stderr() })
}

function toEnded(outcome: Omit<Ended, 'json'>): Ended {
  return { ...outcome, json: () => JSON.parse(outcome.stdout) }
}

export function startCli(args: readonly string[], { cwd = tmpdir(), env }: RunOptions = {}): ChildProcess {
  return spawn(process.execPath, [bin, ...args], { cwd, env: toEnvironment(env), stdio: 'pipe' })
}

function toEnvironment(env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('SALLYPORT_') || name === 'SALLYPORT_TEST_RUN',
  )
  // A home of its own: whoever runs the tests may have a gateway in theirs.
  return { ...Object.fromEntries(inherited), HOME: tmpdir(), NO_COLOR: '1', ...env }
}

export function collect(child: ChildProcess, name: 'stdout' | 'stderr'): () => string {
  let text = ''
  child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  return () => text
}

export type Folder = { path: string; [Symbol.asyncDispose](): Promise<void> }

export async function createFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-cli-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

export async function writeConfig(folder: string, config: object): Promise<string> {
  const file = join(folder, 'sallyport.yaml')
  await writeFile(file, stringify(config))
  return file
}

export function recording(...args: string[]) {
  return { transport: 'stdio', command: process.execPath, args: [fixturePath('recording'), ...args] }
}

/** A gateway on a free port with a data folder of its own. */
export type Served = {
  readonly url: string
  readonly folder: string
  readonly data: string
  /** A command of this gateway's data folder. */
  run(...args: string[]): Promise<Ended>
  fetch(
    path: string,
    init?: { method?: string; body?: unknown; token?: string; headers?: Record<string, string> },
  ): Promise<Response>
  [Symbol.asyncDispose](): Promise<void>
}

/** A gateway that is a process. */
export type Serving = Served & {
  readonly child: ChildProcess
  stdout(): string
  stderr(): string
  /** Ends it and tells the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

export async function serve(config: object, ...args: string[]): Promise<Serving> {
  return serveWith({}, config, ...args)
}

export async function serveWith(env: NodeJS.ProcessEnv, config: object, ...args: string[]): Promise<Serving> {
  const folder = await createFolder()
  const file = await writeConfig(folder.path, config)
  const data = join(folder.path, 'data')
  const child = startCli(['serve', '--config', file, '--data', data, '--port', '0', ...args], { cwd: folder.path, env })
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  const url = await waitForReady(child, stdout, stderr)
  return {
    ...toServed(url, folder, () => stop(child, 'SIGTERM')),
    child,
    stdout,
    stderr,
    stop: (signal = 'SIGTERM') => stop(child, signal),
  }
}

/**
 * A gateway in this process, for tests of commands that only need one to be there. A process takes half a second of CPU
 * to start, and its passwords take as long to compare as those of users.
 */
export async function serveHere(
  config: object,
  env: NodeJS.ProcessEnv = {},
): Promise<Served & { setupUrl(): string | undefined }> {
  const folder = await createFolder()
  const running = await startGateway({
    configFile: await writeConfig(folder.path, config),
    dataFolder: join(folder.path, 'data'),
    port: 0,
    environment: toEnvironment(env),
    passwordCost: { logN: 4, r: 1, p: 1 },
  })
  return { ...toServed(running.url, folder, running.close), setupUrl: running.setupUrl }
}

function toServed(url: string, folder: Folder, close: () => Promise<unknown>): Served {
  const data = join(folder.path, 'data')
  return {
    url,
    folder: folder.path,
    data,
    run: (...words) => runCli(withData(words, data), { cwd: folder.path }),
    fetch: (path, { method, body, token, headers } = {}) =>
      fetch(new URL(path, url), {
        method,
        headers: {
          ...(token && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    async [Symbol.asyncDispose]() {
      await close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** `--data` must stand before `--`, where the words of a server's own command begin. */
function withData(words: readonly string[], data: string): string[] {
  const end = words.includes('--') ? words.indexOf('--') : words.length
  return [...words.slice(0, end), '--data', data, ...words.slice(end)]
}

async function waitForReady(child: ChildProcess, stdout: () => string, stderr: () => string): Promise<string> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const match = /^sallyport ready (\S+)$/m.exec(stdout())
    if (match?.[1] !== undefined) return match[1]
    if (child.exitCode !== null) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  child.kill('SIGKILL')
  throw new Error(`The gateway did not start: ${stderr()}`)
}

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  child.kill(signal)
  await once(child, 'exit')
  return child.exitCode
}

export async function until<Value>(look: () => Promise<Value | undefined> | Value | undefined): Promise<Value> {
  const end = Date.now() + 30_000
  while (Date.now() < end) {
    const value = await look()
    if (value !== undefined) return value
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('It did not happen within thirty seconds')
}

/** A port that somebody else listens on. */
export async function takePort(): Promise<{ port: number; [Symbol.asyncDispose](): Promise<void> }> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

/** A port that nobody listens on. */
export async function findFreePort(): Promise<number> {
  await using taken = await takePort()
  return taken.port
}
