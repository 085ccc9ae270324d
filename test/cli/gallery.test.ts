import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type Ended, recording, runCli, type Served, serveHere } from './support.ts'
import { hasTmux, openTerminal } from './terminal.ts'

const bin = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))
const value = 'tok-0123456789abcdef'
let gateway: Served

beforeAll(async () => {
  const program = (name: string) => ({
    title: 'Notes',
    purpose: 'Keeps notes.',
    connections: [
      {
        id: 'command',
        title: 'Command',
        ...recording(),
        env: { TOKEN: `\${${name}_TOKEN}`, PLACE: `\${${name}_PLACE}`, LEVEL: `\${${name}_LEVEL}` },
        variables: [
          { name: `${name}_TOKEN`, title: 'Token', secret: true, where: 'https://notes.example/tokens' },
          { name: `${name}_PLACE`, title: 'Place', secret: false, example: 'attic' },
          { name: `${name}_LEVEL`, title: 'Level', secret: false, required: false },
        ],
      },
    ],
  })
  const gallery = {
    notes: program('NOTES'),
    asked: program('ASKED'),
    piped: program('PIPED'),
    known: program('KNOWN'),
    named: program('NAMED'),
  }
  gateway = await serveHere({ gallery })
  return () => gateway[Symbol.asyncDispose]()
})

const runWith = (input: string, ...words: string[]): Promise<Ended> =>
  runCli([...words, '--data', gateway.data], { cwd: gateway.folder, input })
const definitionOf = async (name: string) => parse(await saved()).servers[name]
const saved = () => readFile(join(gateway.folder, 'sallyport.yaml'), 'utf8')

describe('servers add NAME without a terminal', () => {
  it('lists every missing value with its title and link, and adds nothing', async () => {
    const before = await saved()
    const { code, stderr } = await gateway.run('servers', 'add', 'notes')
    expect(code).toBe(2)
    expect(stderr).toContain('NOTES_TOKEN: Token (secret). Get it at https://notes.example/tokens')
    expect(stderr).toContain('NOTES_PLACE: Place. Example: attic')
    expect(stderr).not.toMatch(/NOTES_LEVEL: /)
    expect(stderr).toContain('--secrets-stdin')
    expect(await saved()).toBe(before)
  })

  it('takes secrets from standard input and other values from --set', async () => {
    const words = ['servers', 'add', 'piped', '--set', 'PIPED_PLACE=attic', '--secrets-stdin', '--json']
    const { code, stdout, stderr, json } = await runWith(`PIPED_TOKEN=${value}\n`, ...words)
    expect({ code, stderr: stderr.includes(value) }).toEqual({ code: 0, stderr: false })
    expect(json()).toMatchObject({ name: 'piped', state: 'connected' })
    expect(stdout).not.toContain(value)
    expect(await saved()).not.toContain(value)
    expect(await definitionOf('piped')).toMatchObject({ env: { TOKEN: '${PIPED_TOKEN}', PLACE: 'attic' } })
  })

  it('refuses a secret as an argument, and does not repeat it', async () => {
    const { code, stderr } = await gateway.run('servers', 'add', 'notes', '--set', `NOTES_TOKEN=${value}`)
    expect(code).toBe(2)
    expect(stderr).toContain('NOTES_TOKEN is a secret and cannot be an argument')
    expect(stderr).not.toContain(value)
  })

  it('takes an entry under another name with --from-gallery', async () => {
    await runWith(value, 'secrets', 'set', 'NAMED_TOKEN')
    const { code } = await gateway.run(
      ...['servers', 'add', 'mine', '--from-gallery', 'named', '--connection', 'command', '--set', 'NAMED_PLACE=x'],
    )
    expect(code).toBe(0)
    expect(await definitionOf('mine')).toMatchObject({ description: 'Keeps notes.' })
  })

  it('suggests a similar entry for an unknown name, and says how to describe a server', async () => {
    const { code, stderr } = await gateway.run('servers', 'add', 'githib')
    expect(code).toBe(2)
    expect(stderr).toContain('Did you mean github?')
    expect(stderr).toContain('--url URL')
  })

  it('refuses options of the gallery together with a definition', async () => {
    const { code, stderr } = await gateway.run('servers', 'add', 'x', '--url', 'https://x.example', '--from-gallery')
    expect(code).toBe(2)
    expect(stderr).toContain('cannot be used with a definition')
  })
})

describe('the registry', () => {
  let fake: Server
  let registered: Served

  beforeAll(async () => {
    const environmentVariables = [{ name: 'NOTES_KEY', isRequired: true, isSecret: true }]
    const remote = { type: 'streamable-http', url: 'https://notes.invalid/mcp' }
    const headers = [{ name: 'X-Key', value: '{key}', variables: { key: { isRequired: true, isSecret: true } } }]
    const server = { name: 'io.github.ada/notes', version: '1.2.3', description: 'Keeps notes.' }
    const item = {
      server: {
        ...server,
        remotes: [{ ...remote, headers }],
        packages: [{ registryType: 'nuget', identifier: 'x', environmentVariables }],
      },
    }
    fake = createServer((request, response) => {
      const one = request.url?.includes('/versions/')
      response.writeHead(200).end(JSON.stringify(one ? item : { servers: [item] }))
    })
    fake.listen(0, '127.0.0.1')
    await once(fake, 'listening')
    const address = fake.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    registered = await serveHere({ registry: { url: `http://127.0.0.1:${port}` } })
    return async () => {
      await registered[Symbol.asyncDispose]()
      fake.close()
    }
  })

  it('is searched with gallery list --registry', async () => {
    const { code, stdout } = await registered.run('gallery', 'list', 'notes', '--registry')
    expect(code).toBe(0)
    expect(stdout).toContain('io.github.ada/notes')
    expect(stdout).toContain('1.2.3')
  })

  it('adds a server in an exact version, and asks for its values like an entry of the gallery', async () => {
    const words = ['servers', 'add', 'notes', '--from-registry', 'io.github.ada/notes']
    expect(await registered.run(...words)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('needs --version'),
    })
    expect(await registered.run(...words, '--version', 'latest')).toMatchObject({ code: 2 })
    const asked = await registered.run(...words, '--version', '1.2.3')
    expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('IO_GITHUB_ADA_NOTES_key: key (secret)') })
    const stdin = ['--secrets-stdin', '--data', registered.data]
    const input = `IO_GITHUB_ADA_NOTES_key=${value}\n`
    const added = await runCli([...words, '--version', '1.2.3', ...stdin], { cwd: registered.folder, input })
    expect({ code: added.code, told: `${added.stdout}${added.stderr}`.includes(value) }).toEqual({
      code: 8,
      told: false,
    })
    const file = await readFile(join(registered.folder, 'sallyport.yaml'), 'utf8')
    expect(parse(file).servers.notes).toMatchObject({
      trust: 'none',
      headers: { 'X-Key': '${IO_GITHUB_ADA_NOTES_key}' },
    })
  })
})

describe('servers add NAME at a terminal', () => {
  it('asks only for what is missing, and hides a secret', async ({ skip }) => {
    skip(!hasTmux, 'tmux is not installed')
    const words = [process.execPath, bin, 'servers', 'add', 'asked', '--data', gateway.data]
    await using pane = await openTerminal(words.join(' '))
    expect(await pane.shows(/Token \(ASKED_TOKEN\)/)).toContain('https://notes.example/tokens')
    await pane.type(value)
    await pane.press('Enter')
    expect(await pane.shows(/Place \(ASKED_PLACE\)/)).not.toContain(value)
    await pane.type('attic')
    await pane.press('Enter')
    const screen = await pane.shows(/ended with 0/)
    expect(screen).not.toContain('ASKED_LEVEL: ')
    expect(await definitionOf('asked')).toMatchObject({ env: { TOKEN: '${ASKED_TOKEN}', PLACE: 'attic' } })
    expect(await definitionOf('asked')).not.toMatchObject({ env: { LEVEL: expect.anything() } })
  })

  it('asks nothing if every value exists', async ({ skip }) => {
    skip(!hasTmux, 'tmux is not installed')
    await runWith(value, 'secrets', 'set', 'KNOWN_TOKEN')
    const words = [process.execPath, bin, 'servers', 'add', 'known', '--set', 'KNOWN_PLACE=x', '--data', gateway.data]
    await using pane = await openTerminal(words.join(' '))
    expect(await pane.shows(/ended with 0/)).toContain('Uses the existing value of KNOWN_TOKEN')
  })
})

describe('gallery', () => {
  it('list finds entries by words', async () => {
    const { code, stdout } = await gateway.run('gallery', 'list', 'postgres')
    expect(code).toBe(0)
    expect(stdout).toContain('postgres-dbhub')
    expect(stdout).not.toContain('github')
  })

  it('show says what an entry needs, how it signs in, and how that was verified', async () => {
    const { code, stdout } = await gateway.run('gallery', 'show', 'github')
    expect(code).toBe(0)
    expect(stdout).toContain('GITHUB_PERSONAL_ACCESS_TOKEN: Personal access token (secret)')
    expect(stdout).toContain('https://github.com/settings/personal-access-tokens/new')
    expect(stdout).toContain('OAuth, registration preregistered')
    expect(stdout).toMatch(/verified +2026-08, documentation/)
    const { json } = await gateway.run('gallery', 'show', 'github', '--json')
    expect(json()).toMatchObject({ id: 'github', own: false, verified: { how: 'documentation' } })
  })

  it('show suggests a similar id', async () => {
    const { code, stderr } = await gateway.run('gallery', 'show', 'slak')
    expect(code).toBe(1)
    expect(stderr).toContain('Did you mean slack?')
  })
})
