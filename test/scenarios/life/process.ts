import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { onTestFinished } from 'vitest'
import { collect, type Fields, startCli } from '../../cli/support.ts'
import { type Reader, readerOf, temporaryFolder } from '../../storage/support.ts'
import { type ConfigInput, poll, roomy } from '../../support/gateway.ts'
import { recordingServer } from '../governance/support.ts'

/** A gateway as a process of its own, started as people start it. */
export type Process = {
  readonly url: string
  readonly pid: number
  stderr(): string
  connect(mode: 'auto' | 'legacy'): Promise<ClientV2>
  /** What the administrator gets at an address of the REST interface. */
  rest(path: string, init?: { method?: string; body?: object }): Promise<{ status: number; body: Fields }>
  /** Sends the signal and tells how the process ended. */
  end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export type Place = { readonly folder: string; readonly data: string; reader(): Reader; start(): Promise<Process> }

/** A configuration and a data folder, on which gateways are started one after the other. */
export async function preparePlace(config: ConfigInput): Promise<Place> {
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  await writeFile(join(folder, 'sallyport.json'), `${JSON.stringify(roomy(config))}\n`)
  return { folder, data, reader: () => readerOf(data), start: () => start(folder, data) }
}

export function serveArguments(folder: string, data: string): string[] {
  return ['serve', '--config', join(folder, 'sallyport.json'), '--data', data, '--port', '0']
}

async function start(folder: string, data: string): Promise<Process> {
  const child = startCli(serveArguments(folder, data), { cwd: folder })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  const url = await poll(() => /^sallyport ready (\S+)\n/.exec(stdout())?.[1] ?? failed(child, stderr), 30_000)
  const token = (await readFile(join(data, 'admin-token'), 'utf8')).trim()
  const rest: Process['rest'] = async (path, { method = 'GET', body } = {}) => {
    const response = await fetch(new URL(path, url), {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: Object(await response.json()) }
  }
  return {
    url,
    pid: child.pid ?? 0,
    stderr,
    rest,
    async connect(mode) {
      const { body } = await rest('/api/tokens', { method: 'POST', body: { agent: 'tester' } })
      const client = new ClientV2({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
      const headers = { authorization: `Bearer ${body.token}` }
      await client.connect(new TransportV2(new URL('/mcp', url), { requestInit: { headers } }))
      return client
    },
    async end(signal) {
      child.kill(signal)
      await exited
      return { code: child.exitCode, signal: child.signalCode }
    },
  }
}

function failed(child: ChildProcess, stderr: () => string): undefined {
  if (child.exitCode !== null) throw new Error(`The gateway did not start: ${stderr()}`)
  return undefined
}

/** `echo` can be slow, and counts as writing here. */
const tools = { override: { echo: { risk: 'write' as const } } }
const rules = [{ risk: 'write' as const, action: 'allow' as const }]

/** A place with a recording server, whose writing tools may run. */
export async function recordingPlace() {
  const files = recordingServer()
  return { files, place: await preparePlace({ servers: { files: { ...files.server, tools } }, rules }) }
}

/** Resolves when all servers of a gateway are connected. */
export async function connected(gateway: Process): Promise<void> {
  await poll(async () => (await gateway.rest('/api/status')).body.healthy || undefined, 30_000)
}

/** Every call in the database with its entries, as somebody else reads them. */
export function readCalls(reader: Reader) {
  return reader.all(`select id, state, json_extract(arguments, '$.n') as n,
    (select count(*) from audit where call = calls.id and kind = 'intent') as intents,
    (select count(*) from audit where call = calls.id and kind = 'outcome') as outcomes
    from calls`)
}
