import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { getCodec, writeServers } from '../../src/formats/formats.ts'
import { createFolder, type Folder, recording, runCli, type Served, serveHere } from '../cli/support.ts'
import { agents, install } from './agents.ts'

const run = promisify(execFile)
/** Nobody listens there: what a program wants from elsewhere fails at once. */
const nowhere = 'http://127.0.0.1:9'

let gateway: Served
let home: Folder

beforeAll(async () => {
  gateway = await serveHere({ servers: { rec: recording() } })
})
afterAll(() => gateway?.[Symbol.asyncDispose]())

beforeEach(async () => {
  home = await createFolder()
  await mkdir(join(home.path, 'work'))
  return () => home[Symbol.asyncDispose]()
})

const places = () => ({
  HOME: home.path,
  XDG_CONFIG_HOME: join(home.path, '.config'),
  CODEX_HOME: '',
  CLAUDE_CONFIG_DIR: '',
})

async function connect(client: string): Promise<string> {
  const connected = await runCli(['connect', client, '--yes', '--json', '--data', gateway.data], {
    cwd: join(home.path, 'work'),
    env: places(),
  })
  expect(connected, connected.stderr).toMatchObject({ code: 0 })
  return String(connected.json().file)
}

/** What a program says, in a bare environment with the home folder of this test. */
async function say([command = '', ...words]: readonly string[], ...more: string[]): Promise<string> {
  const { CODEX_HOME: _codex, CLAUDE_CONFIG_DIR: _claude, ...own } = places()
  const offline = { HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, NO_PROXY: '127.0.0.1,localhost' }
  const quiet = {
    NO_COLOR: '1',
    OPENCODE_PURE: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
  }
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, ...own, ...offline, ...quiet }
  const running = run(command, [...words, ...more], { cwd: join(home.path, 'work'), env, timeout: 120_000 })
  running.child.stdin?.end()
  const { stdout, stderr } = await running
  return stdout + stderr
}

const shown = {
  'claude-code': /sallyport: \S+\/mcp \(HTTP\) - . Connected/,
  opencode: /sallyport.*connected/,
  codex: /^sallyport +\S+\/mcp .*enabled.*Bearer token/m,
  'gemini-cli': /sallyport: \S+\/mcp \(http\) - Connected/,
} as const

/** In the form of each program: a command, and a server that is switched off where the program can do that. */
const further = [
  {
    name: 'files',
    definition: { transport: 'stdio' as const, command: process.execPath, args: ['-e', '0'], enabled: true },
  },
  {
    name: 'docs',
    definition: { transport: 'http' as const, url: 'http://127.0.0.1:9/mcp', headers: { 'X-Key': '${KEY}' } },
  },
]

describe.each(agents)('$title', (agent) => {
  beforeAll(() => install(agent))

  it('lists the gateway after connect, and no longer after disconnect', async () => {
    const file = await connect(agent.client)
    expect(await say(agent.words, 'mcp', 'list')).toMatch(shown[agent.client])
    const ended = await runCli(['disconnect', agent.client, '--yes', '--data', gateway.data], {
      cwd: join(home.path, 'work'),
      env: places(),
    })
    expect(ended, `${file}: ${ended.stderr}`).toMatchObject({ code: 0 })
    // A name alone: the programs also print paths of temporary folders, which contain it.
    expect(await say(agent.words, 'mcp', 'list')).not.toMatch(/(?:^|\s)sallyport(?::|\s)/m)
  })

  it('lists the servers that an export has written', async () => {
    const file = await connect(agent.client)
    const writing = writeServers(getCodec(agent.client), await readFile(file, 'utf8'), further)
    if (!writing.ok) throw new Error(writing.message)
    await writeFile(file, writing.text)
    const list = await say(agent.words, 'mcp', 'list')
    for (const name of ['sallyport', 'files', 'docs']) expect(list).toContain(name)
  })
})

it('the MCP inspector reads the entry that was written for Claude Code, and lists the tools behind the gateway', async () => {
  const file = await connect('claude-code')
  const inspector = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json'))
  const launcher = [process.execPath, join(inspector, 'clients/launcher/build/index.js'), '--cli', '--config', file]
  const list = ['--server', 'sallyport', '--method', 'tools/list', '--stored-auth-only', '--format', 'json', '--quiet']
  expect(await say(launcher, ...list)).toContain('"rec_echo"')
})
