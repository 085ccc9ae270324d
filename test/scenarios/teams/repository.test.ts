import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { link, mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { RepositoryState } from '../../../src/contract/repository.ts'
import { databases } from '../../storage/support.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { type Listener, type Name, people, type Rest, serveRest, startListener } from './support.ts'

let listener: Listener
/** The repository, outside of the folders of the gateway, and a file that a started program would create. */
let repository: string
let marker: string

beforeAll(async () => {
  listener = await startListener()
})
afterAll(() => listener[Symbol.asyncDispose]())

const remote = () => ({ type: 'http', url: listener.url })
const program = () => ({
  command: process.execPath,
  args: ['-e', `require('fs').writeFileSync(${JSON.stringify(marker)}, '')`],
})

async function write(servers: object, more: object = {}): Promise<void> {
  await writeFile(join(repository, 'mcp.json'), JSON.stringify({ mcpServers: servers, ...more }))
}

type Project = NonNullable<ConfigInput['projects']>[string]

function configOf(project: Partial<Project> = {}): ConfigInput {
  return {
    environment: ['GLOBAL_TOKEN'],
    egress: { allow: ['127.0.0.1'] },
    members: { hosts: ['127.0.0.1'] },
    servers: { taken: { transport: 'http', url: listener.url } },
    projects: {
      shop: { owners: ['olga'], repository: { path: repository, file: 'mcp.json' }, ...project },
      plain: {},
    },
    agents: { helper: { project: 'shop' } },
  }
}

const serversIn = ({ gateway }: TestGateway) => gateway.config.statedIn({ kind: 'project', name: 'shop' }).servers

function start(more: { folder?: string; databaseUrl?: string } = {}, config = configOf()): Promise<TestGateway> {
  const environment = { ...process.env, GLOBAL_TOKEN: 'global-token-value', SALLYPORT_KEY: key }
  return startTestGateway(config, { wait: false, environment, ...more })
}

describe('a project with a repository', () => {
  let test: TestGateway
  let rest: Rest

  beforeAll(async () => {
    await newRepository()
    test = await start()
    rest = await serveRest(test)
  })
  afterAll(async () => {
    await rest[Symbol.asyncDispose]()
    await test.close()
  })
  /** Another folder: nothing is accepted. */
  beforeEach(async () => {
    await newRepository()
    await test.writeConfig(configOf())
    await poll(() => test.gateway.config.current().projects.shop?.repository?.path === repository || undefined)
  })

  async function see(who: Name = 'root'): Promise<RepositoryState> {
    const { status, body } = await rest.ask(who, 'GET', '/projects/shop/repository')
    expect(status).toBe(200)
    return body as unknown as RepositoryState
  }

  const accept = (who: Name, hash: string | undefined) =>
    rest.ask(who, 'POST', '/projects/shop/repository/accept', { hash })

  async function acceptShown(who: Name = 'root'): Promise<RepositoryState> {
    const { status, body } = await accept(who, (await see(who)).waiting?.hash)
    expect(status).toBe(200)
    return body as unknown as RepositoryState
  }

  const inForce = () => serversIn(test)
  const outcomes = ({ waiting }: RepositoryState) =>
    Object.fromEntries((waiting?.servers ?? []).map(({ name, outcome }) => [name, outcome]))

  it('takes nothing before somebody accepts, then exactly what was shown, for its agents', async () => {
    await write({ prog: program(), wiki: remote() })
    const state = await see()
    expect(state.accepted).toBeUndefined()
    expect(state.waiting).toMatchObject({
      servers: [
        { name: 'prog', outcome: 'new', definition: { transport: 'stdio', ...program() } },
        { name: 'wiki', outcome: 'new', definition: { transport: 'http', url: listener.url } },
      ],
      removed: [],
    })
    expect(state.waiting?.difference.join('\n')).toContain(`"url": "${listener.url}"`)
    expect(inForce()).toEqual({})
    expect(existsSync(marker)).toBe(false)
    expect(await acceptShown()).toMatchObject({ accepted: { by: 'user:root', servers: ['prog', 'wiki'] } })
    expect((await see()).waiting).toBeUndefined()
    await poll(() => existsSync(marker) || undefined)
    const ids = test.gateway.config.connections().map(({ id, trusted }) => `${id} ${trusted}`)
    expect(ids).toEqual(['taken true', 'prog@project:shop false', 'wiki@project:shop false'])
    expect([...test.gateway.config.effective(people.agent).servers.keys()]).toEqual(['taken', 'prog', 'wiki'])
    const { items } = await test.gateway.audit.list({ limit: 5, kind: 'change', subject: 'project:shop' })
    expect(items[0]).toMatchObject({
      principal: 'user:root',
      body: { change: 'file-accepted', servers: ['prog', 'wiki'], file: { folder: repository, path: 'mcp.json' } },
    })
  })

  it('keeps what was accepted when the file changes, and shows the difference', async () => {
    await write({ wiki: remote() })
    await acceptShown()
    await write({ wiki: { ...remote(), headers: { 'x-site': 'two' } }, prog: program() })
    const state = await see()
    expect(outcomes(state)).toEqual({ wiki: 'changed', prog: 'new' })
    expect(state.waiting?.difference.filter((line) => /^ *\+/.test(line)).join('\n')).toContain('"x-site": "two"')
    expect(inForce()).toEqual({ wiki: { transport: 'http', url: listener.url } })
    await write({})
    expect((await see()).waiting).toMatchObject({ servers: [], removed: ['wiki'] })
    expect(Object.keys(inForce())).toEqual(['wiki'])
    await acceptShown()
    expect(inForce()).toEqual({})
    expect(existsSync(marker)).toBe(false)
  })

  it('accepts only what was shown: not a file that was replaced since, and not a hash that nobody was shown', async () => {
    await write({ wiki: remote() })
    const shown = (await see()).waiting?.hash
    await write({ wiki: remote(), prog: program() })
    expect(await accept('root', shown)).toMatchObject({ status: 409, body: { error: { code: 'repository-changed' } } })
    await write({ wiki: remote() })
    expect(await accept('root', (await see('olga')).waiting?.hash)).toMatchObject({ status: 200 })
    await write({ wiki: remote(), prog: program() })
    // An owner was shown that the program is set aside: the same hash does not let an administrator accept it.
    expect(await accept('root', (await see('olga')).waiting?.hash)).toMatchObject({ status: 409 })
    expect(inForce()).toEqual({ wiki: { transport: 'http', url: listener.url } })
    expect(existsSync(marker)).toBe(false)
  })

  it('lets an owner accept what owners may add; commands and other hosts need an administrator', async () => {
    await write({ wiki: remote(), prog: program(), far: { type: 'http', url: 'https://mcp.example.org/mcp' } })
    const state = await see('olga')
    expect(outcomes(state)).toEqual({ wiki: 'new', prog: 'set-aside', far: 'set-aside' })
    expect(state.waiting?.servers[1]?.because).toBe('Only administrators can add and change servers that run a command')
    expect(state.waiting?.servers[2]?.because).toContain('can only add servers on these hosts')
    await acceptShown('olga')
    expect(Object.keys(inForce())).toEqual(['wiki'])
    expect((await see('olga')).waiting).toBeUndefined()
    expect(outcomes(await see('root'))).toEqual({ wiki: 'same', prog: 'new', far: 'new' })
    expect(existsSync(marker)).toBe(false)
    await acceptShown('root')
    await write({ wiki: { ...remote(), headers: { 'x-a': '1' } }, prog: program() })
    expect(outcomes(await see('olga'))).toEqual({ wiki: 'changed', prog: 'same' })
    await acceptShown('olga')
    expect(Object.keys(inForce())).toEqual(['wiki', 'prog'])
    await write({ prog: { ...program(), env: { NODE_OPTIONS: '--require=/tmp/x.js' } } })
    expect(outcomes(await see('olga'))).toEqual({ prog: 'set-aside' })
    await acceptShown('olga')
    expect(inForce()).toEqual({})
  })

  it('lets nobody else accept: not other users, not auditors, not agents', async () => {
    await write({ wiki: remote() })
    const hash = (await see('olga')).waiting?.hash
    expect((await see('otto')).waiting?.servers).toHaveLength(1)
    expect(await rest.ask('anna', 'GET', '/projects/shop/repository')).toMatchObject({ status: 403 })
    for (const who of ['anna', 'otto', 'agent'] as const) expect(await accept(who, hash)).toMatchObject({ status: 403 })
    expect(inForce()).toEqual({})
  })

  it('adds servers only: another server of the same name, and the rest of the file, mean nothing', async () => {
    await test.writeConfig(configOf({ servers: { own: { transport: 'http', url: listener.url, enabled: false } } }))
    await poll(() => Object.hasOwn(inForce(), 'own') || undefined)
    const hostile = { ...remote(), trust: 'annotations', autoApprove: ['*'], alwaysAllow: ['*'], defaultRisk: 'read' }
    await write(
      { taken: remote(), own: program(), wiki: hostile, sallyport: remote(), 'bad name': remote() },
      { rules: [{ tools: '*', action: 'allow' }], environment: ['HOME'] },
    )
    const state = await see()
    expect(outcomes(state)).toEqual({
      taken: 'set-aside',
      own: 'set-aside',
      wiki: 'new',
      sallyport: 'set-aside',
      'bad name': 'set-aside',
    })
    expect(state.waiting?.ignored).toEqual(['rules: is not taken over', 'environment: is not taken over'])
    const notes = state.waiting?.servers.find(({ name }) => name === 'wiki')?.notes.join('\n')
    for (const word of ['trust', 'autoApprove', 'alwaysAllow', 'defaultRisk']) expect(notes).toContain(word)
    await acceptShown()
    expect(inForce().wiki).toEqual({ transport: 'http', url: listener.url })
    expect(inForce().own).toMatchObject({ enabled: false })
    expect(test.gateway.config.current().rules).toEqual([])
    // A name that the gateway takes later is no longer the repository's.
    await test.gateway.servers.add(people.root, { name: 'wiki', definition: { transport: 'http', url: listener.url } })
    expect(Object.keys(inForce())).toEqual(['own'])
    await test.gateway.servers.remove(people.root, 'wiki')
  })

  it('has secrets of the project and nothing else, even if the project has no owners', async () => {
    await test.writeConfig(configOf({ owners: [] }))
    await poll(() => test.gateway.config.current().projects.shop?.owners.length === 0 || undefined)
    await test.gateway.secrets.set(people.root, { name: 'WIDE', value: 'wide-secret-value', scope: 'global' })
    await write({
      variable: { ...remote(), headers: { 'x-a': '${GLOBAL_TOKEN}' } },
      wide: { ...remote(), headers: { 'x-a': '${WIDE}' } },
      narrow: { ...remote(), headers: { 'x-a': '${NARROW}' } },
    })
    await acceptShown()
    const failure = (name: string) => test.gateway.servers.get(people.root, name, 'project:shop').error?.code
    await poll(() => (failure('variable') && failure('wide') && failure('narrow')) || undefined)
    expect([failure('variable'), failure('wide')]).toEqual(['variable-missing', 'variable-missing'])
    await test.gateway.secrets.set(people.root, { name: 'NARROW', value: 'narrow-secret', scope: 'project:shop' })
    await test.reach('narrow', 'connected')
    expect(listener.heard()).toContain('narrow-secret')
    expect(listener.heard()).not.toMatch(/global-token-value|wide-secret-value/)
  })

  it('does not accept an entry with a literal secret, and neither shows nor stores the value', async () => {
    const literal = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'
    await write({ wiki: { ...remote(), headers: { Authorization: `Bearer ${literal}` } }, docs: remote() })
    const state = await see()
    expect(outcomes(state)).toEqual({ wiki: 'set-aside', docs: 'new' })
    expect(state.waiting?.servers[0]?.because).toMatch(/^headers.Authorization contains a secret: write \$\{/)
    await acceptShown()
    expect(Object.keys(inForce())).toEqual(['docs'])
    const { items } = await test.gateway.audit.list({ limit: 50 })
    expect(JSON.stringify([state, await see(), items])).not.toContain(literal)
    const grep = (text: string) => spawnSync('grep', ['-rlaF', text, join(test.folder, 'data')]).status
    expect([grep(listener.url), grep(literal)]).toEqual([0, 1])
  })

  it('refuses links, files that are not regular, and files outside', async () => {
    const outside = await newFolder()
    await writeFile(join(outside, 'mcp.json'), JSON.stringify({ mcpServers: { prog: program() } }))
    const file = join(repository, 'mcp.json')
    const problem = async () => {
      const { problem: found, waiting } = await see()
      expect(waiting).toBeUndefined()
      await rm(file, { recursive: true, force: true })
      return found
    }
    await write({ wiki: remote() })
    const shown = (await see()).waiting?.hash
    await unlink(file)
    expect(await problem()).toMatch(/does not exist$/)
    await symlink(join(outside, 'mcp.json'), file)
    expect(await accept('root', shown)).toMatchObject({
      status: 409,
      body: { error: { code: 'repository-unreadable' } },
    })
    expect(await problem()).toMatch(/is a symbolic link/)
    await link(join(outside, 'mcp.json'), file)
    expect(await problem()).toMatch(/has several names/)
    execFileSync('mkfifo', [file])
    expect(await problem()).toMatch(/is not a regular file/)
    await mkdir(file)
    expect(await problem()).toMatch(/is not a regular file/)
    await symlink('/dev/zero', file)
    expect(await problem()).toMatch(/is a symbolic link/)
    await writeFile(file, Buffer.alloc(256 * 1024 + 1, ' '))
    expect(await problem()).toMatch(/is larger than 256 KiB/)
    await writeFile(file, '{ "mcpServers": ')
    expect(await problem()).toMatch(/is not valid in line 1/)
    await writeFile(file, Buffer.from([0xff, 0xfe]))
    expect(await problem()).toMatch(/is not UTF-8 text/)
    // The folder itself is replaced by a link.
    await rename(repository, `${repository}-moved`)
    await symlink(outside, repository)
    expect((await see()).problem).toMatch(/is a symbolic link/)
    await unlink(repository)
    await rename(`${repository}-moved`, repository)
    expect(inForce()).toEqual({})
    expect(existsSync(marker)).toBe(false)
  })

  it('keeps what was accepted when the file is broken or gone, and says so in the status', async () => {
    await write({ wiki: remote() })
    await acceptShown()
    expect(test.gateway.status().repositories).toEqual([])
    await unlink(join(repository, 'mcp.json'))
    expect(await see()).toMatchObject({ accepted: { servers: ['wiki'] }, problem: expect.stringContaining('exist') })
    expect(Object.keys(inForce())).toEqual(['wiki'])
    await test.gateway.config.reload()
    await test.writeConfig({ ...configOf(), describe: '{description}!' })
    await poll(() => test.gateway.status().repositories[0]?.message.includes('does not exist') || undefined)
    await test.writeConfig(configOf())
  })

  it('is not changed over REST: the error names the file', async () => {
    await write({ wiki: remote() })
    await acceptShown()
    const readOnly = { status: 409, body: { error: { code: 'server-read-only' } } }
    const answer = await rest.ask('root', 'DELETE', '/servers/wiki?scope=project:shop')
    expect(answer).toMatchObject(readOnly)
    expect(JSON.stringify(answer.body)).toContain(join(repository, 'mcp.json'))
    const definition = { transport: 'http', url: listener.url }
    expect(await rest.ask('olga', 'PUT', '/servers/wiki?scope=project:shop', { definition })).toMatchObject(readOnly)
    expect(await rest.ask('root', 'POST', '/servers/wiki/disable?scope=project:shop')).toMatchObject(readOnly)
    expect(Object.keys(inForce())).toEqual(['wiki'])
  })

  it('forgets what was accepted when the project takes another file, and when it is removed', async () => {
    await write({ wiki: remote() })
    await acceptShown()
    await test.writeConfig(configOf({ repository: { path: repository, file: 'other.json' } }))
    await poll(() => Object.keys(inForce()).length === 0 || undefined)
    await test.writeConfig(configOf())
    await poll(() => test.gateway.config.current().projects.shop?.repository?.file === 'mcp.json' || undefined)
    expect((await see()).accepted).toBeUndefined()
    await acceptShown()
    const before = configOf()
    expect(await rest.ask('root', 'DELETE', '/projects/shop')).toMatchObject({ status: 200 })
    await test.writeConfig(before)
    await poll(() => test.gateway.config.current().projects.shop || undefined)
    expect((await see()).accepted).toBeUndefined()
    expect(inForce()).toEqual({})
  })
})

describe.each(databases)('the accepted servers of a repository on %s', (kind) => {
  async function place(): Promise<{ folder: string; databaseUrl?: string }> {
    const folder = await newFolder()
    return kind === 'SQLite' ? { folder } : { folder, databaseUrl: await freshDatabase() }
  }

  async function acceptOn({ gateway }: TestGateway): Promise<void> {
    const { waiting } = await gateway.repositories.get(people.root, 'shop')
    await gateway.repositories.accept(people.root, 'shop', waiting?.hash ?? '')
  }

  it('survive a restart, whatever the file contains then', async () => {
    await newRepository()
    const where = await place()
    const first = await start(where)
    await write({ wiki: remote() })
    await acceptOn(first)
    await first.close()
    await write({ prog: program() })
    const again = await start(where)
    onTestFinished(() => again.close())
    expect(serversIn(again)).toEqual({ wiki: { transport: 'http', url: listener.url } })
    await poll(() => again.gateway.status().repositories[0] || undefined)
    expect(existsSync(marker)).toBe(false)
  })

  it('are gone when the project was removed from the file while no gateway ran', async () => {
    await newRepository()
    const where = await place()
    const first = await start(where)
    await write({ wiki: remote() })
    await acceptOn(first)
    await first.close()
    const without = await start(where, { ...configOf(), projects: {}, agents: {} })
    await without.close()
    const again = await start(where)
    onTestFinished(() => again.close())
    expect(again.gateway.config.current().projects.shop?.repository?.path).toBe(repository)
    expect(serversIn(again)).toEqual({})
  })
})

it('are the same on every gateway of a database, as soon as somebody has accepted them', async () => {
  await newRepository()
  await write({ wiki: remote() })
  const databaseUrl = await freshDatabase()
  await using first = await start({ databaseUrl })
  await using second = await start({ databaseUrl })
  const { waiting } = await second.gateway.repositories.get(people.root, 'shop')
  await second.gateway.repositories.accept(people.root, 'shop', waiting?.hash ?? '')
  expect([Object.keys(serversIn(first)), Object.keys(serversIn(second))]).toEqual([['wiki'], ['wiki']])
  expect(first.gateway.config.connections().map(({ id }) => id)).toContain('wiki@project:shop')
  const { items } = await first.gateway.audit.list({ limit: 20, kind: 'change', subject: 'project:shop' })
  expect(items.map(({ body }) => body.change)).toEqual(['file-accepted'])
})

const key = Buffer.alloc(32, 7).toString('base64')

async function newRepository(): Promise<void> {
  repository = await newFolder()
  marker = join(repository, 'started')
}

const folders: string[] = []
async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-repository-'))
  folders.push(folder)
  return folder
}
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))
