import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, it } from 'vitest'
import {
  collect,
  createFolder,
  recording,
  runCli,
  type Serving,
  serve,
  serveWith,
  startCli,
  takePort,
  until,
} from './support.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

/** What an agent is told at its first word, and which tools it gets. */
async function introductionOf(gateway: Serving): Promise<{ text: string; tools: string[] }> {
  const { token } = (await gateway.run('tokens', 'create', '--agent', 'reader', '--json')).json()
  const client = new Client({ name: 'test', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', gateway.url), { requestInit }))
  const text = client.getInstructions() ?? ''
  const { tools } = await client.listTools()
  await client.close()
  return { text, tools: tools.map(({ name }) => name) }
}

it('tells agent and person that a new gateway has no servers and no administrator, and how to change that', async () => {
  await using gateway = await serve({})
  const { text, tools } = await introductionOf(gateway)
  expect(text).toContain('so it offers no tools')
  expect(tools).toEqual([])
  expect(text).toContain('sallyport servers add NAME')
  expect(text).toContain('sallyport setup-link')
  await until(() => (gateway.stderr().includes('No servers are configured') ? true : undefined))
})

it('says nothing of the kind to an agent of a gateway that has both', async () => {
  const env = { SALLYPORT_ADMIN_PASSWORD: 'correct horse battery' }
  await using gateway = await serveWith(env, { servers: { good: recording() } })
  await until(() => (gateway.stderr().includes('connected good') ? true : undefined))
  const { text } = await introductionOf(gateway)
  expect(text).not.toContain('servers add')
  expect(text).not.toContain('setup-link')
})

it('prints a new set-up link while there is no administrator, which voids the one before', async () => {
  await using gateway = await serve({})
  const [first] = await until(() => /http\S+\/setup\?code=\S+/.exec(gateway.stderr()) ?? undefined)
  expect((await fetch(first)).status).toBe(200)
  const made = await gateway.run('setup-link')
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^http\S+\/setup\?code=\S+\n$/) })
  expect((await fetch(first)).status).toBe(403)
  expect((await fetch(made.stdout.trim())).status).toBe(200)
})

it('prints no set-up link once there is an administrator', async () => {
  await using gateway = await serveWith({ SALLYPORT_ADMIN_PASSWORD: 'correct horse battery' }, {})
  const refused = await gateway.run('setup-link')
  expect(refused.code).not.toBe(0)
  expect(refused.stdout).toBe('')
  expect(refused.stderr).toContain('An administrator already exists')
})

it('prints a command for programs that know only stdio, which works from another folder', async () => {
  await using gateway = await serve({ servers: { good: recording() } })
  const [, line = ''] = await until(() => /in an MCP client[^\n]*\n {2}(\S.*)\n/.exec(gateway.stderr()) ?? undefined)
  const [program = '', ...args] = line.split(' ')
  const child = spawn(program, args, { cwd: '/', stdio: 'pipe' })
  const stdout = collect(child, 'stdout')
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`)
  const answer = await until(() => (stdout().includes('\n') ? stdout() : undefined))
  expect(JSON.parse(answer)).toMatchObject({ id: 1, result: { serverInfo: { name: expect.any(String) } } })
  child.stdin.end()
  await once(child, 'close')
})

it('prints the line that connects an agent at every start until one has connected', async () => {
  await using folder = await createFolder()
  const tokens: string[] = []
  const notes: boolean[] = []
  for (let start = 0; start < 2; start++) {
    const child = startCli(['serve', '--demo', '--port', '0'], { cwd: folder.path })
    const stderr = collect(child, 'stderr')
    const [, token = ''] = await until(() => /Authorization: Bearer (\S+)"/.exec(stderr()) ?? undefined)
    tokens.push(token)
    notes.push(stderr().includes('(the command printed at the previous start no longer works)'))
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  expect(new Set(tokens).size).toBe(2)
  expect(notes).toEqual([false, true])
})

it('says that the port is taken before it installs anything', async () => {
  await using taken = await takePort()
  const args = [join(root, 'scripts', 'start.mjs'), '--port', String(taken.port)]
  const failed = await run(process.execPath, args).catch((error: { code: number; stderr: string }) => error)
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining(`port ${taken.port} on 127.0.0.1 is used`) })
  expect(failed.stderr).toContain(`npm start -- --port ${taken.port + 1}`)
})

it('finds the port of a configuration without a parser', async () => {
  const { findPort } = await import('../../scripts/port.mjs')
  await using folder = await createFolder()
  expect(findPort(folder.path, [])).toBe(4777)
  await writeFile(
    join(folder.path, 'sallyport.yaml'),
    'servers: {}\nlisten:\n  # the door\n  host: 127.0.0.1\n  port: 4999\n',
  )
  expect(findPort(folder.path, [])).toBe(4999)
  expect(findPort(folder.path, ['--port', '5000'])).toBe(5000)
})

it.each([
  ['sallyport.yaml', 'listen: { host: 127.0.0.1, port: 4999 }\n', 4999],
  ['sallyport.yaml', 'listen:\r\n  port: 4999\r\n', 4999],
  ['sallyport.yaml', 'rules: []\n', 4777],
  ['sallyport.yaml', '# listen: { port: 4999 }\nservers: {}\n', 4777],
  ['sallyport.yaml', 'listen: &here\n  ? port\n  : 4999\n', undefined],
  ['sallyport.yml', 'listen:\n  port: 4999\n', 4999],
  ['sallyport.json', '{ "listen": { "host": "127.0.0.1", "port": 4999 } }', 4999],
  ['sallyport.json', '{ "servers": {} }', 4777],
  ['sallyport.toml', '[listen]\nhost = "127.0.0.1"\nport = 4999\n', 4999],
  ['sallyport.toml', 'listen.port = 4999\n', 4999],
  ['sallyport.toml', 'listen = { port = 4999 }\n', 4999],
])('finds in %s that %j means the port %s, and none where it is not sure', async (name, text, port) => {
  const { findPort } = await import('../../scripts/port.mjs')
  await using folder = await createFolder()
  await writeFile(join(folder.path, name), text)
  expect(findPort(folder.path, [])).toBe(port)
})

it('says that a gateway runs on the folder already, if that is what has taken the port', async () => {
  const { describeTaken } = await import('../../scripts/port.mjs')
  await using folder = await createFolder()
  expect(describeTaken(folder.path, 4777)).toContain('npm start -- --port 4778')
  const child = startCli(['serve', '--port', '0'], { cwd: folder.path })
  const stdout = collect(child, 'stdout')
  const [, url = ''] = await until(() => /sallyport ready (\S+)/.exec(stdout()) ?? undefined)
  expect(describeTaken(folder.path, 4777)).toBe(`sallyport: a gateway already runs on this folder, at ${url}`)
  child.kill('SIGTERM')
  await once(child, 'exit')
})

it('leaves the port to the gateway where another configuration or data folder is named', async () => {
  const { findPort } = await import('../../scripts/port.mjs')
  await using folder = await createFolder()
  expect(findPort(folder.path, ['--config', 'other.yaml'])).toBeUndefined()
  expect(findPort(folder.path, ['--data=elsewhere'])).toBeUndefined()
})

it('runs from every folder by the path of its script', async () => {
  await using folder = await createFolder()
  expect((await runCli(['--version'], { cwd: folder.path })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})

it('writes a configuration that names its schema, which lies beside it', async () => {
  await using folder = await createFolder()
  const child = startCli(['serve', '--port', '0'], { cwd: folder.path })
  const stdout = collect(child, 'stdout')
  await until(() => (stdout().includes('ready') ? true : undefined))
  const text = await readFile(join(folder.path, '.sallyport', 'sallyport.yaml'), 'utf8')
  const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? []
  const document: unknown = JSON.parse(await readFile(join(folder.path, '.sallyport', schema), 'utf8'))
  expect(document).toMatchObject({ type: 'object', properties: { servers: {} } })
  child.kill('SIGTERM')
  await once(child, 'exit')
})

it('reports a change of listen that needs a restart, and a file that was repaired', async () => {
  await using gateway = await serve({})
  const file = join(gateway.folder, 'sallyport.yaml')
  const status = async () => (await gateway.run('status', '--json')).json()
  expect(await status()).toMatchObject({ config: { restart: [] } })
  await writeFile(file, 'servers: [\n')
  await until(() => (gateway.stderr().includes('is not used') ? true : undefined))
  await writeFile(file, '{}\n')
  await until(() => (gateway.stderr().includes('valid again and in use') ? true : undefined))
  await writeFile(file, 'listen: { port: 4999 }\n')
  await until(() => (gateway.stderr().includes('listen has changed: restart the gateway') ? true : undefined))
  expect(await status()).toMatchObject({ config: { restart: ['listen'] } })
  expect((await gateway.run('status')).stdout).toContain('restart the gateway')
})

it('writes commands so that they can be copied in the folder of the clone, and as they are anywhere else', async () => {
  await using gateway = await serve({})
  const args = ['servers', 'get', 'nope', '--data', gateway.data]
  expect((await runCli(args, { cwd: root })).stderr).toContain('`npx sallyport servers list`')
  expect((await runCli(args, { cwd: gateway.folder })).stderr).toContain('with `sallyport servers list`')
  const listed = await runCli(['servers', 'list', '--data', gateway.data], { cwd: root })
  expect(listed.stderr).toContain('Next: npx sallyport servers add NAME --url URL')
  const made = await runCli(['tokens', 'create', '--agent', 'a', '--data', gateway.data], { cwd: root })
  expect(made.stderr).toContain('claude mcp add --transport http sallyport http://127.0.0.1:')
})
