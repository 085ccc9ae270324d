import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { adminToken } from '../../../src/identity/identity.ts'
import { collect, runCli, startCli, until, writeConfig } from '../../cli/support.ts'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { type ConfigInput, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freshDatabase } from '../../support/postgres.ts'

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sallyport-files-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

/** A program that leaves a file behind when it runs. */
function marker(path: string) {
  return { command: process.execPath, args: ['-e', `require('fs').writeFileSync(${JSON.stringify(path)}, '')`] }
}

async function place(servers: object, more: object = {}) {
  const folder = await mkdtemp(join(root, 'repository-'))
  const file = join(folder, 'mcp-servers.json')
  const write = async (next: object, rest: object = {}) => {
    await writeFile(`${file}.new`, JSON.stringify({ mcpServers: next, ...rest }), { mode: 0o600 })
    await rename(`${file}.new`, file)
  }
  await write(servers, more)
  return { folder, file, write }
}

const { command, args } = stdioFixture('recording')
const docs = { transport: 'stdio', command, args }

function start(file: string, config: ConfigInput = {}, folder?: string): Promise<TestGateway> {
  return startTestGateway(config, { serverFiles: [file], wait: false, ...(folder && { folder }) })
}

function waitFor(gateway: TestGateway, state: string) {
  return until(() => gateway.gateway.serverFiles.list().find((each) => each.state === state))
}

async function trust({ gateway }: TestGateway, by: Principal = adminToken) {
  const [found] = gateway.serverFiles.list()
  return gateway.serverFiles.trust(by, { file: found?.file ?? '', hash: found?.hash ?? '' })
}

describe('a server of mcp-servers.json', () => {
  it('does not start before an administrator confirms it, and then belongs to the global scope', async () => {
    const { file } = await place({ docs })
    await using gateway = await start(file)
    expect(gateway.gateway.servers.list()).toEqual([])
    expect(gateway.gateway.status().config.notices).toEqual([
      expect.stringContaining(`${file} waits for confirmation (added: docs)`),
    ])
    await trust(gateway)
    expect(await gateway.reach('docs', 'connected')).toMatchObject({ scope: 'global', file })
    expect(gateway.gateway.servers.get(adminToken, 'docs')).toMatchObject({ file, definition: { command } })
    const { items } = await gateway.gateway.audit.list({ limit: 10 })
    expect(items).toContainEqual(
      expect.objectContaining({
        principal: 'user:admin-token',
        body: expect.objectContaining({
          change: 'server-file-trusted',
          file,
          servers: [{ name: 'docs', change: 'added' }],
        }),
      }),
    )
  })

  it('gives way to a server of the same name in the configuration', async () => {
    const { file } = await place({ docs: marker(join(root, 'never-1')) })
    await using gateway = await start(file, { servers: { docs: { ...docs, transport: 'stdio' } } })
    await trust(gateway)
    expect((await gateway.reach('docs', 'connected')).file).toBeUndefined()
    expect(gateway.gateway.serverFiles.list()).toMatchObject([{ overridden: ['docs'] }])
    expect(existsSync(join(root, 'never-1'))).toBe(false)
  })

  it('cannot be changed over REST or the CLI, only replaced; the error names the file', async () => {
    const { file } = await place({ docs })
    await using gateway = await start(file, { projects: { shop: {} } })
    await trust(gateway)
    await gateway.reach('docs', 'connected')
    const { servers } = gateway.gateway
    const definition = { ...docs, transport: 'stdio' as const, description: 'mine' }
    const attempts = [
      () => servers.enable(adminToken, 'docs', false),
      () => servers.enable(adminToken, 'docs', false, 'project:shop'),
      () => servers.remove(adminToken, 'docs'),
      () => servers.change(adminToken, { name: 'docs', definition }),
      () => servers.setRisks(adminToken, { name: 'docs', risks: { plain_thing: 'read' } }),
    ]
    for (const attempt of attempts)
      await expect(attempt()).rejects.toMatchObject({
        code: 'server-read-only',
        message: expect.stringContaining(file),
      })
    const before = await readFile(file, 'utf8')
    await servers.add(adminToken, { name: 'docs', definition })
    expect(servers.get(adminToken, 'docs').file).toBeUndefined()
    expect(await readFile(file, 'utf8')).toBe(before)
  })

  it('is refined by a user for the user alone', async () => {
    const { file } = await place({ docs })
    await using gateway = await start(file)
    await trust(gateway)
    await gateway.gateway.servers.enable(adminToken, 'docs', false, 'user:ada')
    expect(
      gateway.gateway.config.effective({ kind: 'user', name: 'ada' }).servers.get('docs')?.definition.enabled,
    ).toBe(false)
    expect(
      gateway.gateway.config.effective({ kind: 'user', name: 'bob' }).servers.get('docs')?.definition.enabled,
    ).toBe(true)
  })

  it('has the spellings of other programs, and no rules, trust or risks', async () => {
    const more = { trust: 'annotations', defaultRisk: 'read', autoApprove: ['*'], tools: {}, secretsInArguments: true }
    const entry = { type: 'local', command: [command, ...args], disabled: true, ...more }
    const { file } = await place({ docs: entry }, { rules: [{ tools: '*', action: 'allow' }], environment: ['HOME'] })
    await using gateway = await start(file)
    const shown = await trust(gateway)
    expect(shown.ignored.sort()).toEqual(
      ['rules', 'environment', ...Object.keys(more).map((key) => `mcpServers.docs.${key}`)].sort(),
    )
    expect(gateway.gateway.servers.get(adminToken, 'docs').definition).toMatchObject({ command, args, enabled: false })
    expect(gateway.gateway.servers.get(adminToken, 'docs').definition).not.toMatchObject({ defaultRisk: 'read' })
    expect(gateway.gateway.config.effective({ kind: 'agent', name: 'bot' }).rules).toEqual([])
  })

  it('is shown with what it would get, without its literal secrets', async () => {
    const literal = `ghp_${'a1B2'.repeat(9)}`
    const { file } = await place({
      docs: {
        url: 'https://mcp.example/${TEAM}',
        headers: { Authorization: `Bearer ${literal}`, 'X-Key': '${GITHUB_TOKEN}' },
      },
    })
    await using gateway = await start(file)
    const [shown] = gateway.gateway.serverFiles.list()
    expect(shown?.servers).toMatchObject([{ name: 'docs', change: 'added', variables: ['GITHUB_TOKEN', 'TEAM'] }])
    await trust(gateway)
    const { items } = await gateway.gateway.audit.list({ limit: 10 })
    expect(JSON.stringify([shown, items, gateway.gateway.serverFiles.list()])).not.toContain(literal)
    await gateway.stop()
    for (const name of ['sallyport.db', 'sallyport.db-wal']) {
      const path = join(gateway.folder, 'data', name)
      if (existsSync(path)) expect((await readFile(path)).includes(literal)).toBe(false)
    }
  })
})

describe('a changed mcp-servers.json', () => {
  it('waits: the confirmed version stays in force, and the difference is shown', async () => {
    const { file, write } = await place({ docs, old: { ...docs, enabled: false } })
    await using gateway = await start(file)
    await trust(gateway)
    await gateway.reach('docs', 'connected')
    const ran = join(root, 'never-2')
    await write({ docs: { ...docs, ...marker(ran) }, more: marker(ran) })
    const waiting = await waitFor(gateway, 'waiting')
    expect(waiting.servers.map(({ name, change }) => `${name} ${change}`)).toEqual([
      'docs changed',
      'more added',
      'old removed',
    ])
    expect(waiting.servers[0]).toMatchObject({ before: { command }, definition: marker(ran) })
    expect(gateway.gateway.status().config.notices[0]).toMatch(/changed: docs.*confirmed version stays in use/)
    expect(gateway.gateway.servers.get(adminToken, 'docs')).toMatchObject({ state: 'connected', definition: { args } })
    expect(existsSync(ran)).toBe(false)
    await trust(gateway)
    await until(() => (existsSync(ran) ? true : undefined))
    expect(gateway.gateway.servers.list().map(({ name }) => name)).not.toContain('old')
  })

  it('is not applied by a restart either, and the confirmed version is', async () => {
    const { file, write } = await place({ docs })
    const folder = await mkdtemp(join(root, 'data-'))
    const first = await start(file, {}, folder)
    await trust(first)
    await first.stop()
    const ran = join(root, 'never-3')
    await write({ docs: marker(ran) })
    await using second = await start(file, {}, folder)
    expect(second.gateway.serverFiles.list()).toMatchObject([{ state: 'waiting' }])
    await second.reach('docs', 'connected')
    expect(existsSync(ran)).toBe(false)
    await write({ docs })
    await waitFor(second, 'in-force')
  })

  it('that is removed takes its servers along, which is recorded, and brings them back', async () => {
    const { file, write } = await place({ docs })
    await using gateway = await start(file)
    await trust(gateway)
    await rm(file)
    await until(() => (gateway.gateway.servers.list().length === 0 ? true : undefined))
    const { items } = await gateway.gateway.audit.list({ limit: 10 })
    expect(items).toContainEqual(
      expect.objectContaining({ principal: 'file', body: expect.objectContaining({ change: 'server-file', file }) }),
    )
    await write({ docs })
    await gateway.reach('docs', 'connected')
  })

  it('with a mistake leaves the confirmed version in force and names the line', async () => {
    const { file, write } = await place({ docs })
    await using gateway = await start(file)
    await trust(gateway)
    await write({ docs: { command: 'a', url: 'https://b.example' } })
    expect((await waitFor(gateway, 'refused')).reason).toMatch(
      /mcp-servers\.json:1: mcpServers\.docs\.url: and `command`/,
    )
    await gateway.reach('docs', 'connected')
  })
})

describe('a confirmation', () => {
  it('is for the content that was looked at, whatever the file contains by then', async () => {
    const { file, write } = await place({ docs })
    await using gateway = await start(file)
    const [seen] = gateway.gateway.serverFiles.list()
    const ran = join(root, 'never-4')
    await write({ docs: marker(ran) })
    await until(() => (gateway.gateway.serverFiles.list()[0]?.hash === seen?.hash ? undefined : true))
    const wanted = { file, hash: seen?.hash ?? '' }
    await expect(gateway.gateway.serverFiles.trust(adminToken, wanted)).rejects.toMatchObject({
      code: 'config-conflict',
    })
    expect(existsSync(ran)).toBe(false)
  })

  it('applies the bytes that were read, even if the file was swapped in the same moment', async () => {
    const { file } = await place({ docs })
    await using gateway = await start(file)
    const [seen] = gateway.gateway.serverFiles.list()
    const ran = join(root, 'never-5')
    await writeFile(file, JSON.stringify({ mcpServers: { docs: marker(ran) } }))
    await gateway.gateway.serverFiles.trust(adminToken, { file, hash: seen?.hash ?? '' })
    await gateway.reach('docs', 'connected')
    await waitFor(gateway, 'waiting')
    expect(existsSync(ran)).toBe(false)
  })

  it('needs an administrator', async () => {
    const { file } = await place({ docs })
    await using gateway = await start(file)
    for (const role of ['member', 'auditor'] as const)
      await expect(trust(gateway, { kind: 'user', name: 'eve', role })).rejects.toThrow()
    const body = JSON.stringify({ file, hash: 'x' })
    const asked = await gateway.fetch('bot', '/api/config/files/trust', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(asked.status).toBe(403)
    expect(gateway.gateway.serverFiles.list()).toMatchObject([{ state: 'waiting' }])
  })
})

type Spoiled = [why: string, spoil: (file: string) => Promise<unknown>, reason: RegExp]

/** Only root can give a file away. */
const foreign: Spoiled[] =
  process.getuid?.() === 0
    ? [['belongs to another user', (file) => chown(file, 1234, 1234), /belongs to another user/]]
    : []

describe('a file that somebody else could have written', () => {
  it.each<Spoiled>([
    ['is a link', (file) => rename(file, `${file}.x`).then(() => symlink(`${file}.x`, file)), /symbolic link/],
    ['can be written by its group', (file) => chmod(file, 0o660), /Other users can write to/],
    ['can be written by everyone', (file) => chmod(file, 0o602), /Other users can write to/],
    ['is in a folder that everyone can write', (file) => chmod(join(file, '..'), 0o777), /replace the files in it/],
    ['is a folder', (file) => rm(file).then(() => mkdir(file)), /not a regular file/],
    ['is too large', (file) => writeFile(file, ' '.repeat(1_048_577)), /larger than/],
    ...foreign,
  ])('is refused, also with confirmed content: it %s', async (_, spoil, reason) => {
    const ran = join(root, `never-${Math.random()}`)
    const { file } = await place({ docs: marker(ran) })
    await spoil(file)
    await using gateway = await start(file)
    expect(gateway.gateway.serverFiles.list()).toMatchObject([
      { state: 'refused', reason: expect.stringMatching(reason) },
    ])
    await expect(trust(gateway)).rejects.toMatchObject({ code: 'request-invalid' })
    expect(gateway.gateway.servers.list()).toEqual([])
    expect(existsSync(ran)).toBe(false)
  })
})

it('is confirmed for every gateway on one PostgreSQL database that reads the same content', async () => {
  const { file } = await place({ docs })
  const options = { serverFiles: [file], wait: false, databaseUrl: await freshDatabase() }
  await using first = await startTestGateway({}, options)
  await using second = await startTestGateway({}, options)
  await trust(first)
  await second.reach('docs', 'connected')
})

describe('a cloned repository', () => {
  it('runs nothing that nobody confirmed, whichever command is used in it', async () => {
    const ran = join(root, 'never-6')
    const { folder, file } = await place({ evil: marker(ran) })
    await mkdir(join(folder, '.sallyport'), { mode: 0o700 })
    await writeFile(
      join(folder, '.sallyport', 'mcp-servers.json'),
      JSON.stringify({ mcpServers: { worse: marker(ran) } }),
    )
    const home = await mkdtemp(join(root, 'home-'))
    const data = await mkdtemp(join(root, 'data-'))
    const config = await writeConfig(data, { listen: { port: 0 } })
    const env = { HOME: home }
    await writeFile(join(folder, '.mcp.json'), '{}')
    for (const words of [['config', 'check', config], ['doctor', '--config', config, '--json'], ['status']])
      await runCli(words, { cwd: folder, env })
    const child = startCli(['serve', '--config', config, '--data', data], { cwd: folder, env })
    const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
    try {
      await until(() => (stdout().includes('sallyport ready') ? true : undefined))
      await until(() => (stderr().includes(`sallyport config trust ${file}`) ? true : undefined))
      expect(stderr()).toMatch(/\.mcp\.json is a configuration of another program and is not read/)
      const status = await runCli(['doctor', '--data', data, '--config', config, '--json'], { cwd: folder, env })
      expect(status.stdout).toContain(`${file} waits for confirmation (added: evil)`)
      const shown = await runCli(['config', 'trust', file, '--data', data], { cwd: folder, env })
      expect(shown.code).toBe(7)
      expect(shown.stderr).toContain('new evil')
      expect(shown.stderr).toContain(ran)
      expect(shown.stderr).not.toContain('worse')
      const other = await runCli(['config', 'trust', file, '--data', data, '--hash', 'wrong'], { cwd: folder, env })
      expect(other.code).toBe(1)
      expect(existsSync(ran)).toBe(false)
      await runCli(['config', 'trust', file, '--data', data, '--yes'], { cwd: folder, env })
      await until(() => (existsSync(ran) ? true : undefined))
    } finally {
      child.kill('SIGTERM')
    }
  })

  it('has no say in a gateway that `stdio` starts', async () => {
    const ran = join(root, 'never-7')
    const { folder, file } = await place({ evil: marker(ran) })
    const config = await writeConfig(folder, { listen: { port: 0 } })
    const data = await mkdtemp(join(root, 'data-'))
    const child = startCli(['serve', '--config', config, '--data', data, '--linger', '60'], { cwd: folder })
    const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
    try {
      await until(() => (stdout().includes('sallyport ready') ? true : undefined))
      const shown = await runCli(['config', 'trust', file, '--data', data, '--yes'], { cwd: folder })
      expect(shown.stderr).toContain('does not read')
      expect(stderr()).not.toContain(file)
      expect(existsSync(ran)).toBe(false)
    } finally {
      child.kill('SIGTERM')
    }
  })
})
