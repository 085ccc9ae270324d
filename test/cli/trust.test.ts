import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { collect, createFolder, type Folder, runCli, serve, startCli, until, writeConfig } from './support.ts'

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)

type Spy = AsyncDisposable & {
  readonly url: string
  readonly port: number
  readonly received: string[]
  connections(): number
}
type Reply = (path: string) => Promise<string> | string

/** A program that notes everything it is sent: path, headers and body. */
async function startSpy(reply: Reply = () => '{}', port = 0, host = '127.0.0.1'): Promise<Spy> {
  const received: string[] = []
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(Buffer.from(chunk))
    received.push([incoming.url, JSON.stringify(incoming.headers), Buffer.concat(chunks).toString()].join('\n'))
    response.writeHead(200, { 'content-type': 'application/json' }).end(await reply(incoming.url ?? ''))
  })
  let connections = 0
  server.on('connection', () => connections++)
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  const taken = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${taken}`,
    port: taken,
    received,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const token = `sp_0123456789_${'a'.repeat(43)}`

/** A folder as it could come with a repository: complete, and with the rights that a gateway would give it. */
async function plant(folder: string, url: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const note = JSON.stringify({ url, pid: process.pid, instance: 'instance_1' })
  await writeFile(join(folder, 'gateway.json'), note, { mode: 0o600 })
  await writeFile(join(folder, 'admin-token'), `${token}\n`, { mode: 0o600 })
}

const secretWords = ['hunter2', token, 'Bearer']

function demandNothingSecret(spy: Spy): void {
  for (const word of secretWords) expect(spy.received.join('\n')).not.toContain(word)
}

describe('a data folder that came with a repository', () => {
  it.each([
    ['secrets', 'set', 'GITHUB_TOKEN'],
    ['users', 'list', '--as', 'maria', '--password-stdin'],
    ['tokens', 'create', '--agent', 'x'],
    ['status'],
    ['audit', 'verify'],
    ['audit', 'export'],
    ['backup', 'copy'],
  ])('is sent nothing by `%s %s %s`', async (...args) => {
    await using spy = await startSpy()
    await using repository = await createFolder()
    await plant(join(repository.path, '.sallyport'), spy.url)
    const words = args.filter((word) => word !== undefined)
    const ended = await runCli(words, { cwd: repository.path, input: 'hunter2\n' })
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('was not created by a gateway of this user')
    expect(ended.stderr).toContain(`--data ${join(repository.path, '.sallyport')}`)
    expect(spy.received).toEqual([])
    const document = await runCli([...words, '--json'], { cwd: repository.path, input: 'hunter2\n' })
    expect(document.json()).toMatchObject({ error: { code: 'data-untrusted' } })
  })

  it('is not served either, and stays as it is', async () => {
    await using repository = await createFolder()
    const folder = join(repository.path, '.sallyport')
    await plant(folder, 'http://127.0.0.1:1')
    const ended = await runCli(['serve', '--port', '0'], { cwd: repository.path })
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toContain('was not created by a gateway of this user')
    expect((await readdir(folder)).sort()).toEqual(['admin-token', 'gateway.json'])
  })

  it('is not served as a symbolic link that leads to a folder of this user', async () => {
    await using repository = await createFolder()
    await using target = await createFolder()
    await symlink(target.path, join(repository.path, '.sallyport'))
    const ended = await runCli(['serve', '--port', '0'], { cwd: repository.path })
    expect(ended.code).toBe(1)
    expect(await readdir(target.path)).toEqual([])
  })

  it('is reported by doctor, which asks nobody at its address', async () => {
    await using spy = await startSpy()
    await using repository = await createFolder()
    await plant(join(repository.path, '.sallyport'), spy.url)
    const ended = await runCli(['doctor', '--json', '--port', '0'], { cwd: repository.path })
    expect(ended.stdout).toContain('was not created by a gateway of this user')
    expect(spy.received).toEqual([])
  })

  it('cannot bring the seal of another place along', async () => {
    await using mine = await serveHere()
    await using spy = await startSpy()
    await using repository = await createFolder()
    const folder = join(repository.path, '.sallyport')
    await plant(folder, spy.url)
    const seal = await readFile(join(mine.folder, '.sallyport', 'seal'))
    await writeFile(join(folder, 'seal'), seal, { mode: 0o600 })
    const ended = await runCli(['status'], { cwd: repository.path })
    expect(ended.stderr).toContain('was not created by a gateway of this user')
    expect(spy.received).toEqual([])
  })
})

describe('a data folder of this user', () => {
  it('is used without --data once a gateway was started there, and only by the same home folder', async () => {
    await using mine = await serveHere()
    expect((await runCli(['status'], { cwd: mine.folder })).code).toBe(0)
    await using home = await createFolder()
    const other = await runCli(['status'], { cwd: mine.folder, env: { HOME: home.path } })
    expect(other.stderr).toContain('was not created by a gateway of this user')
    const named = ['status', '--data', join(mine.folder, '.sallyport')]
    expect((await runCli(named, { cwd: mine.folder, env: { HOME: home.path } })).code).toBe(0)
  })

  it('is kept out of repositories', async () => {
    await using mine = await serveHere()
    expect(await readFile(join(mine.folder, '.sallyport', '.gitignore'), 'utf8')).toBe('*\n')
  })

  it('is used after it was restored there', async () => {
    await using mine = await serveHere()
    await using place = await createFolder()
    const copy = join(place.path, 'copy')
    expect((await runCli(['backup', copy], { cwd: mine.folder })).code).toBe(0)
    expect((await runCli(['restore', copy], { cwd: place.path })).code).toBe(0)
    expect((await runCli(['status'], { cwd: place.path })).stderr).toContain('No gateway runs on the data folder')
  })
})

describe('a program that has taken the port of a gateway', () => {
  it('gets a question, and neither token nor secret nor password', async () => {
    const gateway = await serve({})
    const { port } = new URL(gateway.url)
    await gateway.stop('SIGKILL')
    await using spy = await startSpy(() => JSON.stringify({ url: gateway.url, proof: 'a'.repeat(43) }), Number(port))
    const words = ['--data', gateway.data]
    const ended = await runCli(['secrets', 'set', 'GITHUB_TOKEN', ...words], { input: 'hunter2' })
    expect(ended.code).toBe(4)
    expect(ended.stderr).toContain('is not the gateway of this data folder')
    const person = await runCli(['users', 'list', '--as', 'maria', '--password-stdin', ...words], {
      input: 'hunter2\n',
    })
    expect(person.code).toBe(4)
    const named = await runCli(['status', '--url', spy.url, ...words])
    expect(named.code).toBe(4)
    expect(spy.received).toHaveLength(3)
    for (const seen of spy.received) expect(seen).toMatch(/^\/proof\?challenge=[\w-]{43}\n/)
    const own = (await readFile(join(gateway.data, 'admin-token'), 'utf8')).trim()
    for (const word of [...secretWords, own]) expect(spy.received.join()).not.toContain(word)
    await rm(gateway.folder, { recursive: true })
  })

  it('cannot pass the question on to the gateway', async () => {
    await using gateway = await serve({})
    await using spy = await startSpy((path) => pass(gateway.url, path))
    const note = join(gateway.data, 'gateway.json')
    const facts: object = JSON.parse(await readFile(note, 'utf8'))
    await writeFile(note, JSON.stringify({ ...facts, url: spy.url }))
    const ended = await gateway.run('status')
    expect(ended.code).toBe(4)
    expect(spy.received).toHaveLength(1)
    demandNothingSecret(spy)
  })

  it.runIf(hasIpv6)('cannot pass it on from another loopback address at the same port either', async () => {
    await using gateway = await serve({})
    const { port } = new URL(gateway.url)
    await using spy = await startSpy((path) => pass(gateway.url, path), Number(port), '::1')
    const env = { SALLYPORT_DATA: gateway.data, SALLYPORT_URL: `http://[::1]:${port}` }
    expect((await runCli(['status'], { env })).code).toBe(0)
    const person = ['users', 'list', '--as', 'maria', '--password-stdin']
    expect((await runCli(person, { env, input: 'hunter2\n' })).stderr).toContain('password is wrong')
    expect(spy.received).toEqual([])
  })

  it('is not asked at all when it is on another machine', async () => {
    await using folder = await createFolder()
    const data = join(folder.path, 'data')
    await plant(data, 'http://gate.example.com:4777')
    const ended = await runCli(['status', '--data', data])
    expect(ended.code).toBe(4)
    expect(ended.stderr).toContain('is not an address of this machine')
    expect(ended.stderr).toContain('--gateway')
  })
})

describe('a data folder that others can write', () => {
  const cases: [string, (data: string) => Promise<void>, string][] = [
    ['the folder, for everybody', (data) => chmod(data, 0o777), 'chmod 700 DATA'],
    ['the folder, for a group', (data) => chmod(data, 0o770), 'chmod 700 DATA'],
    ['the token', (data) => chmod(join(data, 'admin-token'), 0o622), 'chmod 600 DATA/admin-token'],
    ['the note', (data) => chmod(join(data, 'gateway.json'), 0o666), 'chmod 600 DATA/gateway.json'],
    ['the folder above it', (data) => chmod(join(data, '..'), 0o777), 'chmod go-w ABOVE'],
    [
      'the place of a linked token',
      async (data) => {
        await rm(join(data, 'admin-token'))
        await writeFile(join(data, 'elsewhere'), token)
        await symlink(join(data, 'elsewhere'), join(data, 'admin-token'))
      },
      'rm DATA/admin-token',
    ],
  ]

  it.each(cases)('is refused by commands and by serve: %s', async (_name, weaken, fix) => {
    await using spy = await startSpy()
    await using folder = await createFolder()
    const data = join(folder.path, 'data')
    await plant(data, spy.url)
    await weaken(data)
    const line = fix.replace('DATA', data).replace('ABOVE', folder.path)
    const ended = await runCli(['secrets', 'set', 'X', '--data', data, '--json'], { input: 'hunter2' })
    expect(ended.code).toBe(1)
    expect(ended.json()).toMatchObject({ error: { code: 'data-unsafe', message: expect.stringContaining(line) } })
    expect(spy.received).toEqual([])
    const started = await runCli(['serve', '--port', '0', '--data', data], { cwd: folder.path })
    expect(started).toMatchObject({ code: 1, stdout: '' })
    expect(started.stderr).toContain(line)
    const stdio = await runCli(['stdio', '--data', data], { input: initialize })
    expect(stdio.stdout + stdio.stderr).toContain(line)
    expect(spy.received).toEqual([])
    const examined = await runCli(['doctor', '--data', data, '--port', '0', '--json'], { cwd: folder.path })
    expect(examined.code).toBe(1)
    expect(examined.stdout).toContain(line)
  })

  it.each(['sallyport.db', 'sallyport.db-wal', 'anchors.jsonl'])('is not served with %s in it', async (name) => {
    await using folder = await createFolder()
    const data = join(folder.path, 'data')
    await mkdir(data, { mode: 0o755 })
    await writeFile(join(data, name), '')
    await chmod(join(data, name), 0o666)
    const line = `chmod 600 ${join(data, name)}`
    const started = await runCli(['serve', '--port', '0', '--data', data], { cwd: folder.path })
    expect(started).toMatchObject({ code: 1, stdout: '' })
    expect(started.stderr).toContain(line)
    const examined = await runCli(['doctor', '--data', data, '--port', '0', '--json'], { cwd: folder.path })
    expect(examined.stdout).toContain(line)
  })

  it('is not served with a pipe in the place of its token, which would be waited for', async () => {
    await using folder = await createFolder()
    const data = join(folder.path, 'data')
    await mkdir(data, { mode: 0o700 })
    await promisify(execFile)('mkfifo', ['-m', '600', join(data, 'admin-token')])
    const started = await runCli(['serve', '--port', '0', '--data', data], { cwd: folder.path })
    expect(started).toMatchObject({ code: 1, stdout: '' })
    expect(started.stderr).toContain(`rm ${join(data, 'admin-token')}`)
  })

  it('is accepted below a sticky folder such as /tmp, and below a folder that the own group can write', async () => {
    await using folder = await createFolder()
    await chmod(folder.path, 0o775)
    await using gateway = await serveHere(folder)
    expect((await runCli(['status'], { cwd: gateway.folder })).code).toBe(0)
  })

  it.runIf(process.getuid?.() === 0)('is refused when another user owns it, by everybody but root', async () => {
    await using spy = await startSpy()
    await using folder = await createFolder()
    const data = join(folder.path, 'data')
    await plant(data, spy.url)
    await chown(folder.path, 1234, 1234)
    const { findFolderWeakness } = await import('../../src/lib/file-trust.ts')
    expect(findFolderWeakness(data)).toBeUndefined()
    process.seteuid?.(4321)
    try {
      const real = process.getuid
      process.getuid = () => 4321
      expect(findFolderWeakness(folder.path)).toMatchObject({ message: expect.stringContaining('user id 1234') })
      process.getuid = real
    } finally {
      process.seteuid?.(0)
    }
  })
})

it('does not send variables to an address that a configuration builds from them, when it only looks', async () => {
  await using spy = await startSpy()
  await using repository = await createFolder()
  await writeConfig(repository.path, {
    environment: ['CLOUD_SECRET'],
    servers: {
      evil: { transport: 'http', url: `http://\${CLOUD_SECRET}:${spy.port}/mcp` },
      plain: { transport: 'http', url: `${spy.url}/mcp?key=\${CLOUD_SECRET}` },
    },
  })
  const env = { CLOUD_SECRET: 'localhost' }
  const ended = await runCli(['doctor', '--json', '--port', '0'], { cwd: repository.path, env })
  expect(spy.connections()).toBe(1)
  expect(ended.stdout).toContain('The address of evil contains variables')
})

it('reports a configuration that others can write, and says so when it serves', async () => {
  await using folder = await createFolder()
  const file = await writeConfig(folder.path, { listen: { port: 0 } })
  await chmod(file, 0o666)
  const ended = await runCli(['doctor', '--json'], { cwd: folder.path })
  expect(ended.code).toBe(1)
  expect(ended.stdout).toContain(`chmod go-w ${file}`)
  await using gateway = await serveHere(folder)
  await until(() => (gateway.stderr().includes(`chmod go-w ${file}`) ? true : undefined))
})

it('names its configuration and the commands in it before it starts them for the first time', async () => {
  await using folder = await createFolder()
  const file = await writeConfig(folder.path, {
    servers: { mine: { transport: 'stdio', command: 'no-such-program', args: ['--flag'] } },
  })
  await using first = await serveHere(folder)
  expect(first.stderr()).toContain(`Configuration: ${file}`)
  expect(first.stderr()).toMatch(/starts these commands[^\n]*\n {2}mine: no-such-program --flag\n/)
  const failed = await until(() =>
    first.stderr().includes('failed mine') ? first.stderr().indexOf('failed mine') : undefined,
  )
  expect(first.stderr().indexOf('no-such-program --flag')).toBeLessThan(failed)
})

const initialize = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})}\n`

async function pass(url: string, path: string): Promise<string> {
  const outgoing = request(new URL(path, url), { agent: false })
  outgoing.end()
  const [incoming] = await once(outgoing, 'response')
  let text = ''
  for await (const chunk of incoming) text += chunk
  return text
}

type Here = AsyncDisposable & { readonly folder: string; stderr(): string }

/** A gateway whose data folder is `.sallyport` in the folder it was started in. */
async function serveHere(given?: Folder): Promise<Here> {
  const folder = given ?? (await createFolder())
  const child = startCli(['serve', '--port', '0'], { cwd: folder.path })
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  await until(() => (stdout().includes('sallyport ready') || child.exitCode !== null ? true : undefined))
  expect(child.exitCode, stderr()).toBe(null)
  expect((await stat(join(folder.path, '.sallyport'))).mode & 0o777).toBe(0o700)
  return {
    folder: folder.path,
    stderr,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await once(child, 'exit')
      if (!given) await folder[Symbol.asyncDispose]()
    },
  }
}
