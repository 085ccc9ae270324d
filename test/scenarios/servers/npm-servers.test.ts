import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stopChild } from '../../fixtures/fixtures.ts'
import { readLines } from '../../fixtures/lib/stdio.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { call, freePort, temporaryFolder } from './support.ts'

const packages = join(import.meta.dirname, '../../../node_modules/@modelcontextprotocol')
const program = (name: string) => join(packages, name, 'dist', 'index.js')

describe('real servers from npm', () => {
  it('server-everything works over stdio', async () => {
    const everything = { transport: 'stdio' as const, command: process.execPath, args: [program('server-everything')] }
    await using gateway = await startTestGateway({ servers: { everything } })
    await expectEverything(gateway)
  })

  it.each([
    ['streamableHttp', 'http', '/mcp'],
    ['sse', 'sse', '/sse'],
    ['sse', 'http', '/sse'],
  ] as const)('server-everything works in its mode %s, configured as %s', async (mode, transport, path) => {
    await using server = await startEverything(mode)
    const everything = { transport, url: `http://127.0.0.1:${server.port}${path}` }
    await using gateway = await startTestGateway({ servers: { everything } })
    await expectEverything(gateway)
  })

  it('server-filesystem reads and, where a rule allows it, writes', async () => {
    await using folder = await temporaryFolder()
    await writeFile(join(folder.path, 'note.txt'), 'written before')
    const files = {
      transport: 'stdio' as const,
      command: process.execPath,
      args: [program('server-filesystem'), folder.path],
    }
    await using gateway = await startTestGateway({
      servers: { files },
      rules: [{ tools: 'files_write_file', action: 'allow' }],
      limits: { hold: 0 },
    })
    await gateway.reach('files', 'connected')
    const client = await gateway.connectV1('tester')
    const path = join(folder.path, 'note.txt')
    expect((await call(client, 'files_read_text_file', { path })).text).toContain('written before')
    expect(await call(client, 'files_write_file', { path, content: 'written after' })).toMatchObject({ isError: false })
    expect(await readFile(path, 'utf8')).toBe('written after')
    expect(await call(client, 'files_move_file', { source: path, destination: `${path}.2` })).toMatchObject({
      code: 'approval-waiting',
    })
    expect(await call(client, 'files_read_text_file', { path: '/etc/hostname' })).toMatchObject({ isError: true })
  })

  it('server-memory keeps what it is told', async () => {
    await using folder = await temporaryFolder()
    const memory = {
      transport: 'stdio' as const,
      command: process.execPath,
      args: [program('server-memory')],
      env: { MEMORY_FILE_PATH: join(folder.path, 'memory.jsonl') },
    }
    await using gateway = await startTestGateway({
      servers: { memory },
      rules: [{ tools: 'memory_create_entities', action: 'allow' }],
    })
    await gateway.reach('memory', 'connected')
    const client = await gateway.connectV1('tester')
    const entities = [{ name: 'gate', entityType: 'door', observations: ['two of them'] }]
    expect(await call(client, 'memory_create_entities', { entities })).toMatchObject({ isError: false })
    expect((await call(client, 'memory_read_graph')).text).toContain('two of them')
  })
})

async function expectEverything(gateway: Awaited<ReturnType<typeof startTestGateway>>): Promise<void> {
  const server = await gateway.reach('everything', 'connected')
  expect(server).toMatchObject({ protocol: '2025-11-25', complete: true })
  expect(server.tools).toBeGreaterThan(5)
  await gateway.writeConfig({
    ...gateway.gateway.config.current(),
    rules: [{ tools: 'everything_*', action: 'allow' }],
  })
  const client = await gateway.connectV1('tester')
  await expect.poll(async () => (await call(client, 'everything_echo', { message: 'hello' })).text).toBe('Echo: hello')
  const heard: number[] = []
  const onprogress = ({ progress }: { progress: number }) => {
    heard.push(progress)
  }
  const long = { duration: 1, steps: 4 }
  expect((await call(client, 'everything_trigger-long-running-operation', long, { onprogress })).isError).toBe(false)
  expect(heard.length).toBeGreaterThan(1)
}

async function startEverything(mode: string): Promise<AsyncDisposable & { readonly port: number }> {
  const port = await freePort()
  const child = spawn(process.execPath, [program('server-everything'), mode], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  await untilListening(child)
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await stopChild(child)
    },
  }
}

async function untilListening(child: ChildProcess): Promise<void> {
  const { stderr } = child
  if (!stderr) throw new Error('No stderr')
  const listening = new Promise<void>((resolve) => {
    readLines(stderr, (line) => {
      if (/(listening|running) on port/.test(line)) resolve()
    })
  })
  const ended = once(child, 'exit').then(() => {
    throw new Error('The server ended before it listened')
  })
  ended.catch(() => undefined)
  await Promise.race([listening, ended])
}
