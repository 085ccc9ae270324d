import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collect, recording, type Serving, serve, startCli, until } from './support.ts'

let gateway: Serving

beforeAll(async () => {
  const silent = { transport: 'stdio', command: process.execPath, args: ['-e', 'process.exit(1)'], enabled: false }
  gateway = await serve({ servers: { rec: recording(), silent } })
  await until(() => (gateway.stderr().includes('connected rec') ? true : undefined))
})

afterAll(() => gateway[Symbol.asyncDispose]())

describe('wrong values', () => {
  it.each([
    [['servers', 'add', 'x', '--default-risk', 'low', '--', 'ls'], '--default-risk: must be read, write or danger'],
    [['servers', 'add', 'x', '--trust', 'me', '--', 'ls'], '--trust: must be annotations or none'],
    [['servers', 'add', 'x', '--from-json', '{"command":""}'], 'command: must not be empty'],
    [['servers', 'add', 'x', '--from-json', '{"type":"stdio"}'], 'command: is missing'],
    [['servers', 'add', 'x', '--from-json', '{"url":5}'], 'url: must be text, not a number'],
    [
      ['servers', 'add', 'x', '--url', ''],
      'url: must be a complete https:// or http:// address, such as https://mcp.example.com/mcp',
    ],
    [
      ['servers', 'add', 'x', '--url', 'http://127.0.0.1:99999/'],
      'url: must be a complete https:// or http:// address',
    ],
    [['calls', 'list', '--state', 'gone'], '--state: must be deciding, waiting, running, ok'],
    [['webhooks', 'deliveries', '--state', 'x'], '--state: must be waiting, delivered or failed'],
    [['servers', 'risks', 'rec', '--yes'], '--yes: is only allowed together with --suggest'],
    [['audit', 'verify', '--anchors', '/nowhere/anchors.jsonl'], '/nowhere/anchors.jsonl cannot be read'],
    [['audit', 'export', '--output', '/nowhere/audit.jsonl'], '/nowhere/audit.jsonl cannot be written'],
  ])('of %j are named in one sentence, with 2', async (args, said) => {
    const ended = await gateway.run(...args)
    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toMatch(/^error: [^\n]+\n {7}[^\n]+\n( {7}More: sallyport explain [a-z-]+\n)?$/)
    expect(ended.stderr).toContain(`error: ${said}`)
  })

  it('are named in the same words over REST', async () => {
    const token = (await readFile(join(gateway.data, 'admin-token'), 'utf8')).trim()
    const ask = async (definition: object) => {
      const reply = await gateway.fetch('/api/servers', { method: 'POST', token, body: { name: 'x', definition } })
      return { status: reply.status, text: await reply.text() }
    }
    const wrong = await ask({ transport: 'http', url: 5 })
    expect(wrong.status).toBe(400)
    expect(wrong.text).toContain('definition.url: must be text, not a number')
    expect((await ask({ transport: 'stdio' })).text).toContain('definition.command: is missing')
  })

  it.each([
    ['tokens', 'revoke', 'token_nope'],
    ['agents', 'change', 'nobody', '--owner', 'ada'],
  ])(
    'such as an id that does not exist are repeated, with the command that lists those that do: %s %s',
    async (...args) => {
      const ended = await gateway.run(...args)
      expect(ended.code).toBe(1)
      expect(ended.stderr).toMatch(/token_nope|nobody/)
      expect(ended.stderr).toContain('`list`')
    },
  )
})

it('says when settings are shown of an agent that nobody knows', async () => {
  for (const command of ['show', 'effective']) {
    const shown = await gateway.run('config', command, '--agent', 'reviwer', '--json')
    expect(shown.code).toBe(0)
    expect(shown.stderr).toBe('No agent is named reviwer yet. These are the settings that a new agent would get.\n')
  }
})

describe('a working folder', () => {
  it('is taken from the current folder, and one that does not exist is named', async () => {
    await mkdir(join(gateway.folder, 'sub'))
    const { command, args } = recording()
    const added = await gateway.run('servers', 'add', 'here', '--cwd', 'sub', '--', command, ...args)
    expect(added.code).toBe(0)
    expect((await gateway.run('servers', 'get', 'here', '--json')).json()).toMatchObject({
      definition: { cwd: join(gateway.folder, 'sub') },
    })
    const away = await gateway.run('servers', 'validate', '--cwd', 'nowhere', '--', command, ...args)
    expect(away.stdout).toContain(`the working folder ${join(gateway.folder, 'nowhere')} does not exist`)
    await gateway.run('servers', 'remove', 'here', '--yes')
  })
})

describe('a server', () => {
  it('that is saved and does not connect is said to be so', async () => {
    const script = `console.error('KEY is missing'); process.exit(1)`
    const added = await gateway.run('servers', 'add', 'bad', '--', process.execPath, '-e', script)
    expect(added.code).toBe(8)
    expect(added.stderr).toContain('warning: bad is saved, but not connected\n  spawn: The program ended with code 1\n')
    expect(added.stderr).toContain('`sallyport servers logs bad`')
    expect(added.stderr).toContain('  | KEY is missing\n')
    expect((await gateway.run('servers', 'get', 'bad')).stdout).toContain('  | KEY is missing\n')
    const listed = await gateway.run('servers', 'list')
    expect(listed.stdout).toMatch(/^bad .*The program ended with code 1: KEY is missing$/m)
    const examined = await gateway.run('doctor')
    expect(examined.code).toBe(1)
    expect(examined.stdout).toMatch(
      /^problem {2}server bad +bad is not connected: The program ended with code 1\n {9,}\| KEY/m,
    )
    const tried = await gateway.run('servers', 'validate', '--', process.execPath, '-e', script)
    expect(tried.stdout).toContain('  | KEY is missing')
    expect(tried.stdout).not.toContain('servers logs')
    const off = await gateway.run('servers', 'disable', 'bad', '--scope', 'agent:reviewer')
    expect(off).toMatchObject({ code: 0, stdout: 'bad: disabled, 0 tools\n' })
    await gateway.run('servers', 'remove', 'bad', '--scope', 'agent:reviewer', '--yes')
    await gateway.run('servers', 'remove', 'bad', '--yes')
  })
})

describe('Ctrl+C', () => {
  it('that comes twice, from the terminal and from a launcher, ends a waiting call with 7', async () => {
    const args = ['tools', 'call', 'rec_write_thing', '--arg', 'path=interrupted', '--data', gateway.data]
    const child = startCli(args, { cwd: gateway.folder })
    const stderr = collect(child, 'stderr')
    await until(() => (stderr().includes('Waiting for approval') ? true : undefined))
    const ended = once(child, 'close')
    const signals = setInterval(() => child.kill('SIGINT'), 3)
    setTimeout(() => clearInterval(signals), 60)
    expect(await ended).toEqual([7, null])
  })
})
