import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startProgram } from '../lib/program.ts'

export type Gateway = {
  readonly url: string
  readonly pid: number
  /** Sends a request with the admin token; returns the status and the duration. */
  ask(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; ms: number; body: Record<string, unknown> }>
  call(tool: string, given?: object): Promise<{ status: number; ms: number }>
  readonly token: string
  close(): Promise<void>
}

const bin = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))
export const recording = stdio(fileURLToPath(new URL('../../test/fixtures/recording.ts', import.meta.url)))
export const endless = stdio(fileURLToPath(new URL('./endless-line.mjs', import.meta.url)))
const key = Buffer.alloc(32, 9).toString('base64')

function stdio(path: string) {
  return { transport: 'stdio', command: process.execPath, args: [path] }
}

/** A gateway as a process, with every server connected. */
export async function startGateway(servers: object, databaseUrl?: string): Promise<Gateway> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-faults-'))
  const [file, data] = [join(folder, 'sallyport.json'), join(folder, 'data')]
  const limits = { callsPerMinute: 1_000_000, concurrent: 10_000, changesPerMinute: 1_000_000, result: 100_000_000 }
  await writeFile(file, JSON.stringify({ servers, limits, rules: [{ tools: '*', action: 'allow' }] }))
  const args = [bin, 'serve', '--config', file, '--data', data, '--port', '0']
  const env = { SALLYPORT_KEY: key, ...(databaseUrl !== undefined && { SALLYPORT_DATABASE_URL: databaseUrl }) }
  const program = await startProgram({ args, env })
  const administrator = (await readFile(join(data, 'admin-token'), 'utf8')).trim()

  async function request(token: string, method: string, path: string, body?: object) {
    const began = performance.now()
    const answer = await fetch(new URL(path, program.url), {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    })
    const told = await answer.text()
    const ms = performance.now() - began
    return { status: answer.status, ms, body: told.startsWith('{') ? Object(JSON.parse(told)) : {} }
  }
  const ask: Gateway['ask'] = (method, path, body) => request(administrator, method, path, body)
  while ((await ask('GET', '/api/status')).body.healthy !== true) await wait(100)
  const token = String((await ask('POST', '/api/tokens', { agent: 'bench' })).body.token)
  return {
    url: program.url,
    pid: program.pid,
    ask,
    token,
    call: (tool, given = {}) => request(token, 'POST', `/api/tools/${tool}/call`, { arguments: given }),
    async close() {
      await program.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
