import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as TransportV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { type Fields, isFields, parseJson } from '../../fixtures/lib/json-rpc.ts'
import { type ConfigInput, poll, roomy } from '../../support/gateway.ts'
import { allowAll } from '../mcp/raw.ts'

const bin = fileURLToPath(new URL('../../../bin/sallyport.js', import.meta.url))

/** What every client answers when it is asked who its user is. */
const who = { action: 'accept' as const, content: { username: 'ada', email: 'ada@example.com' } }

/** `sallyport stdio` by hand: lines in, lines out. */
export type Program = {
  readonly child: ChildProcess
  /** Every line of standard output so far. */
  lines(): string[]
  messages(): Fields[]
  stderr(): string
  say(message: Fields | string): void
  /** The answer to a request, once it is there. */
  ask(id: string | number, method: string, params?: Fields): Promise<Fields>
  answerTo(id: string | number | null): Promise<Fields>
  /** `initialize` and what belongs to it. */
  greet(): Promise<Fields>
  /** Ends its input and tells the exit code. */
  end(): Promise<number | null>
  kill(signal: NodeJS.Signals): Promise<number | null>
}

/** A data folder of its own with a recording server in its configuration, and everything that runs on it. */
export type Place = AsyncDisposable & {
  readonly folder: string
  readonly data: string
  readonly configFile: string
  readonly record: string
  readonly environment: Record<string, string>
  writeConfig(config: ConfigInput): Promise<void>
  /** `sallyport stdio` on this folder. */
  program(...args: string[]): Program
  clientV1(...args: string[]): Promise<ClientV1>
  clientV2(mode: 'auto' | 'legacy', ...args: string[]): Promise<ClientV2>
  /** `sallyport serve` on this folder, as a person would. */
  serve(...args: string[]): Promise<ChildProcess>
  run(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }>
  /** Process ids of the gateways that run, or try to, on this folder. */
  gateways(): Promise<number[]>
  note(): Promise<Fields | undefined>
}

export async function createPlace(config: ConfigInput = {}): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-stdio-'))
  const data = join(folder, 'data')
  const configFile = join(folder, 'sallyport.json')
  const record = join(folder, 'record.jsonl')
  const closers: (() => Promise<unknown>)[] = []
  const environment: Record<string, string> = { ...inherited(), HOME: folder, NO_COLOR: '1' }
  const usual = { servers: { rec: stdioFixture('recording', ['--record', record]) }, rules: allowAll }
  const writeConfig = (wanted: ConfigInput) => writeFile(configFile, JSON.stringify(roomy({ ...usual, ...wanted })))
  await writeConfig(config)
  const stdioArgs = (args: readonly string[]) => [
    bin,
    'stdio',
    ...(args.includes('--url') || args.includes('--data') ? [] : ['--data', data, '--config', configFile]),
    ...['--linger', '0'],
    ...args,
  ]
  const start = (args: readonly string[]) => {
    const child = spawn(process.execPath, [...args], { cwd: folder, env: environment, stdio: 'pipe' })
    closers.push(() => end(child, 'SIGTERM'))
    return child
  }

  const place: Place = {
    folder,
    data,
    configFile,
    record,
    environment,
    writeConfig,
    program: (...args) => toProgram(start(stdioArgs(args))),
    async clientV1(...args) {
      const client = new ClientV1({ name: 'test-client', version: '1.0.0' }, { capabilities: { elicitation: {} } })
      client.setRequestHandler(ElicitRequestSchema, () => who)
      closers.push(() => client.close())
      await client.connect(new TransportV1({ ...toCommand(args), stderr: 'ignore' }))
      return client
    },
    async clientV2(mode, ...args) {
      const options = { versionNegotiation: { mode }, capabilities: { elicitation: {} } }
      const client = new ClientV2({ name: 'test-client', version: '1.0.0' }, options)
      client.setRequestHandler('elicitation/create', () => who)
      closers.push(() => client.close())
      await client.connect(new TransportV2({ ...toCommand(args), stderr: 'ignore' }))
      return client
    },
    async serve(...args) {
      const child = start([bin, 'serve', '--data', data, '--config', configFile, '--port', '0', ...args])
      const read = collect(child)
      await poll(() => read.stdout().includes('sallyport ready') || undefined, 30_000)
      return child
    },
    async run(...args) {
      const child = start([bin, ...args, '--data', data])
      const read = collect(child)
      child.stdin.end()
      await once(child, 'close')
      return { code: child.exitCode, stdout: read.stdout(), stderr: read.stderr() }
    },
    gateways: () => findGateways(folder),
    async note() {
      const text = await readFile(join(data, 'gateway.json'), 'utf8').catch(() => '{}')
      const value = parseJson(text)
      return isFields(value) && 'pid' in value ? value : undefined
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(closers.map((close) => close()))
      for (const pid of await findGateways(folder)) tryKill(pid, 'SIGTERM')
      await poll(async () => (await findGateways(folder)).length === 0 || undefined, 30_000)
      await rm(folder, { recursive: true, force: true })
    },
  }
  return place

  function toCommand(args: readonly string[]) {
    return { command: process.execPath, args: stdioArgs(args), env: environment, cwd: folder }
  }
}

/** What a test run is known by must reach every process; settings of whoever runs it must not. */
function inherited(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name, value]) => value !== undefined && (!name.startsWith('SALLYPORT_') || name === 'SALLYPORT_TEST_RUN'),
  )
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? '']))
}

export function toProgram(child: ChildProcess): Program {
  const { stdout, stderr } = collect(child)
  const lines = () => stdout().split('\n').filter(Boolean)
  const messages = () => lines().map(parseJson).filter(isFields)
  const say = (message: Fields | string) =>
    void child.stdin?.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
  const answerTo = (id: string | number | null) =>
    poll(() => messages().find((message) => message.id === id && !('method' in message)), 60_000)
  const ask = (id: string | number, method: string, params?: Fields) => {
    say({ jsonrpc: '2.0', id, method, ...(params && { params }) })
    return answerTo(id)
  }
  return {
    child,
    lines,
    messages,
    stderr,
    say,
    ask,
    answerTo,
    async greet() {
      const clientInfo = { name: 'by hand', version: '1' }
      const answer = await ask('greeting', 'initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo,
      })
      say({ jsonrpc: '2.0', method: 'notifications/initialized' })
      return answer
    },
    async end() {
      child.stdin?.end()
      if (child.exitCode === null) await once(child, 'exit')
      return child.exitCode
    },
    kill: (signal) => end(child, signal),
  }
}

function collect(child: ChildProcess): { stdout(): string; stderr(): string } {
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
      texts[name] += chunk
    })
  }
  return { stdout: () => texts.stdout, stderr: () => texts.stderr }
}

export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill(signal)
    await once(child, 'exit')
  }
  return child.exitCode
}

export function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended meanwhile.
  }
}

/** Reads at once: tests look at hundreds of processes many times a second, and none of these files is on a disk. */
export function readCommand(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

async function findGateways(folder: string): Promise<number[]> {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))
  return pids.map(Number).filter((pid) => {
    const words = readCommand(pid)
    return words.includes('serve') && words.some((word) => word.startsWith(folder))
  })
}

/** Tools come when their server is connected, which may be after the gateway is ready. */
export async function untilConnected(list: () => Promise<{ tools: readonly { name: string }[] }>): Promise<string[]> {
  return poll(async () => {
    const names = (await list()).tools.map(({ name }) => name)
    return names.length > 0 ? names : undefined
  }, 30_000)
}

export const none = async (place: Place) => (await place.gateways()).length === 0 || undefined

export async function isServed(program: Program): Promise<void> {
  expect(await program.greet()).toMatchObject({ result: { serverInfo: { name: 'sallyport' } } })
}

/** Some of the programs come before the gateway of the last one has ended, some while it ends, some after. */
export async function serveInTurn(place: Place, pausesMs: readonly number[]): Promise<void> {
  for (const pause of pausesMs) {
    const program = place.program()
    await isServed(program)
    expect(await program.end()).toBe(0)
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
  await poll(() => none(place))
}
