import { chmod, chown, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readClient } from '../../src/formats/formats.ts'
import { createFolder, type Ended, type Folder, recording, runCli, type Served, serveHere } from './support.ts'

let gateway: Served
let folder: Folder

beforeAll(async () => {
  gateway = await serveHere({ servers: { rec: { ...recording(), env: { API_KEY: '${API_KEY:-none}' } } } })
})
afterAll(() => gateway?.[Symbol.asyncDispose]())

beforeEach(async () => {
  folder = await createFolder()
  return () => folder[Symbol.asyncDispose]()
})

/** A command in the folder, with the folder as the home folder. */
function run(...words: string[]): Promise<Ended> {
  const env = {
    HOME: folder.path,
    XDG_CONFIG_HOME: join(folder.path, '.config'),
    CODEX_HOME: '',
    CLAUDE_CONFIG_DIR: '',
  }
  return runCli([...words, '--data', gateway.data], { cwd: folder.path, env })
}

async function put(file: string, text: string): Promise<string> {
  const path = join(folder.path, file)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text, { mode: 0o644 })
  return path
}

async function works(token: string): Promise<boolean> {
  const answer = await gateway.fetch('/api/tools', { token })
  return answer.status === 200
}

const tokenIn = (text: string) => /sp_[0-9a-z]{10}_[\w-]{43}/.exec(text)?.[0] ?? ''

const files = {
  'claude-code': ['.claude.json', '{\n  "numStartups": 3, "mcpServers": { "other": { "command": "other" } }\n}\n'],
  cursor: [
    '.cursor/mcp.json',
    '{\n  // mine\n  "mcpServers": {\n    "other": { "url": "https://a.example.com" }, // beside it\n  },\n}\n',
  ],
  vscode: ['.config/Code/User/mcp.json', '{\n\t"servers": {}\n}'],
  opencode: ['.config/opencode/opencode.json', '{ "mcp": { "other": { "type": "local", "command": ["other"] } } }\n'],
  codex: ['.codex/config.toml', 'model = "x" # mine\r\n\r\n[mcp_servers.other] # beside it\r\ncommand = "other"\r\n'],
  'gemini-cli': ['.gemini/settings.json', ''],
  windsurf: ['.codeium/windsurf/mcp_config.json', '{"mcpServers":{}}'],
} as const

describe.each(Object.entries(files))('connect %s', (client, [file, text]) => {
  it('adds one entry that works, and disconnect restores the bytes and revokes the token', async () => {
    const path = await put(file, text)
    const connected = await run('connect', client, '--json')
    expect(connected).toMatchObject({ code: 0 })
    expect(connected.json()).toMatchObject({ client, file: path, agent: client, written: true })
    const written = await readFile(path, 'utf8')
    const token = tokenIn(written)
    expect(await works(token)).toBe(true)
    expect(connected.stdout + connected.stderr).not.toContain(token)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    for (const kept of text.match(/\/\/.*|#.*|numStartups|"other"/g) ?? []) expect(written).toContain(kept)
    const entry = readClient(client as keyof typeof files, written)
    expect(entry).toMatchObject({
      servers: expect.arrayContaining([
        expect.objectContaining({
          key: 'sallyport',
          definition: expect.objectContaining({ transport: 'http', url: `${gateway.url.replace(/\/$/, '')}/mcp` }),
        }),
      ]),
    })
    const disconnected = await run('disconnect', client, '--json')
    expect(disconnected.json()).toMatchObject({ restored: true, revoked: true })
    expect(await readFile(path, 'utf8')).toBe(text)
    expect((await stat(path)).mode & 0o777).toBe(0o644)
    expect(await works(token)).toBe(false)
  })
})

describe('connect', () => {
  it('creates a missing file, and disconnect removes it', async () => {
    const path = join(folder.path, '.cursor', 'mcp.json')
    expect(await run('connect', 'cursor')).toMatchObject({ code: 0 })
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await run('disconnect', 'cursor')).toMatchObject({ code: 0 })
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('shows the change with --dry-run, and makes neither a change nor a token', async () => {
    const [file, text] = files.cursor
    const path = await put(file, text)
    const before = (await run('tokens', 'list', '--json')).json()
    const shown = await run('connect', 'cursor', '--dry-run')
    expect(shown).toMatchObject({ code: 0, stdout: 'Nothing was changed.\n' })
    expect(shown.stderr).toContain('+     "sallyport": {')
    expect(shown.stderr).toContain('"Authorization": "Bearer TOKEN"')
    expect(await readFile(path, 'utf8')).toBe(text)
    expect((await run('tokens', 'list', '--json')).json()).toEqual(before)
  })

  it('writes a variable instead of the token with --env, and prints the token once', async () => {
    const path = await put('.codex/config.toml', '')
    const connected = await run('connect', 'codex', '--env', 'GATE_TOKEN', '--agent', 'reviewer')
    const token = connected.stdout.trim()
    expect(await works(token)).toBe(true)
    const written = await readFile(path, 'utf8')
    expect(written).toContain('bearer_token_env_var = "GATE_TOKEN"')
    expect(written).not.toContain(token)
    expect(await run('connect', 'vscode', '--env', 'GATE_TOKEN', '--project')).toMatchObject({ code: 0 })
    expect(await readFile(join(folder.path, '.vscode', 'mcp.json'), 'utf8')).toContain('Bearer ${env:GATE_TOKEN}')
    await run('disconnect', 'codex')
    expect(await works(token)).toBe(false)
    expect(await run('connect', 'claude-desktop', '--env', 'GATE_TOKEN')).toMatchObject({ code: 2 })
  })

  it('gives Claude Desktop the stdio command, which needs no token in the file', async () => {
    expect(await run('connect', 'claude-desktop')).toMatchObject({ code: 0 })
    const place = process.platform === 'darwin' ? 'Library/Application Support/Claude' : '.config/claude'
    const path = join(folder.path, place, 'claude_desktop_config.json')
    const written = JSON.parse(await readFile(path, 'utf8'))
    expect(written.mcpServers.sallyport.args.slice(1)).toEqual([
      'stdio',
      '--agent',
      'claude-desktop',
      '--data',
      gateway.data,
    ])
    expect(tokenIn(JSON.stringify(written))).toBe('')
    expect(await run('disconnect', 'claude-desktop')).toMatchObject({ code: 0 })
  })

  it('repeated, replaces the token, and disconnect still restores the first text', async () => {
    const [file, text] = files.cursor
    const path = await put(file, text)
    await run('connect', 'cursor')
    const first = tokenIn(await readFile(path, 'utf8'))
    const again = await run('connect', 'cursor')
    const second = tokenIn(await readFile(path, 'utf8'))
    expect(again.stderr).not.toContain(first)
    expect([await works(first), await works(second)]).toEqual([false, true])
    await run('disconnect', 'cursor')
    expect(await readFile(path, 'utf8')).toBe(text)
  })

  it('is undone entry by entry after somebody changed the file', async () => {
    const [file, text] = files.cursor
    const path = await put(file, text)
    await run('connect', 'cursor')
    const token = tokenIn(await readFile(path, 'utf8'))
    await writeFile(path, (await readFile(path, 'utf8')).replace('// mine', '// mine, changed'))
    const disconnected = await run('disconnect', 'cursor', '--json')
    expect(disconnected.json()).toMatchObject({ restored: false, removed: true, revoked: true })
    expect(await readFile(path, 'utf8')).toBe(text.replace('// mine', '// mine, changed'))
    expect(await works(token)).toBe(false)
  })

  it('finds the token in the file if the record is gone', async () => {
    const path = await put('.cursor/mcp.json', '{}\n')
    await run('connect', 'cursor')
    const token = tokenIn(await readFile(path, 'utf8'))
    const records = join(gateway.data, 'clients')
    for (const name of await readdir(records)) {
      expect((await stat(join(records, name))).mode & 0o777).toBe(0o600)
      expect(await readFile(join(records, name), 'utf8')).not.toContain(token)
      await writeFile(join(records, name), '{}')
    }
    expect((await run('disconnect', 'cursor', '--json')).json()).toMatchObject({ restored: false, revoked: true })
    expect(await works(token)).toBe(false)
  })

  it('writes through a link to a file of this user, and keeps the link', async () => {
    const target = await put('dotfiles/mcp.json', '{}\n')
    await mkdir(join(folder.path, '.cursor'))
    await symlink(target, join(folder.path, '.cursor', 'mcp.json'))
    const connected = await run('connect', 'cursor', '--json')
    expect(connected.json()).toMatchObject({ file: target })
    expect(tokenIn(await readFile(target, 'utf8'))).not.toBe('')
    await run('disconnect', 'cursor')
    expect(await readFile(target, 'utf8')).toBe('{}\n')
  })

  it('refuses the file of another user, also behind a link, and makes no token', async () => {
    const foreign = await foreignFile()
    await mkdir(join(folder.path, '.cursor'))
    await symlink(foreign, join(folder.path, '.cursor', 'mcp.json'))
    const before = (await run('tokens', 'list', '--json')).json()
    const refused = await run('connect', 'cursor')
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('client-file-unsafe') })
    expect(await run('connect', 'cursor', '--file', folder.path)).toMatchObject({ code: 1 })
    expect((await run('tokens', 'list', '--json')).json()).toEqual(before)
  })

  it('refuses a file that it cannot read or edit, with the line, and changes nothing', async () => {
    const path = await put('.cursor/mcp.json', '{\n  "mcpServers": {\n')
    const refused = await run('connect', 'cursor')
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/line 3.*client-file-invalid/s) })
    expect(await readFile(path, 'utf8')).toBe('{\n  "mcpServers": {\n')
    await put('.codex/config.toml', 'mcp_servers = { other = { command = "a" } }\n')
    expect(await run('connect', 'codex')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('client-file-invalid'),
    })
  })

  it('uses no record from a .sallyport folder that came with a repository', async () => {
    const records = join(folder.path, '.sallyport', 'clients')
    await mkdir(records, { recursive: true })
    await chmod(join(folder.path, '.sallyport'), 0o700)
    await put('.cursor/mcp.json', '{ "mcpServers": { "sallyport": { "url": "http://127.0.0.1:1/mcp" } } }\n')
    const env = { HOME: join(folder.path, 'home') }
    const refused = await runCli(['disconnect', 'cursor', '--project', '--gateway', gateway.url, '--token', 'x'], {
      cwd: folder.path,
      env,
    })
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('data-untrusted') })
  })
})

async function foreignFile(): Promise<string> {
  if (process.getuid?.() !== 0) return '/etc/hostname'
  const path = await put('theirs/mcp.json', '{}\n')
  await chown(path, 12_345, 12_345)
  return path
}

describe('export', () => {
  it('prints every server in the format of the program, with variables for secrets', async () => {
    const exported = await run('export', 'vscode')
    expect(exported.code).toBe(0)
    expect(JSON.parse(exported.stdout)).toMatchObject({
      servers: { rec: { type: 'stdio', command: process.execPath, env: { API_KEY: '${env:API_KEY}' } } },
    })
    expect(exported.stderr).toContain('rec: env.API_KEY: VS Code has no fallback for variables')
  })

  it('adds them to a file with --out, and keeps what the file has', async () => {
    const path = await put('mcp.json', '{\n  // mine\n  "servers": { "other": { "command": "other" } }\n}\n')
    expect((await run('export', 'vscode', '--out', path, '--json')).json()).toMatchObject({
      file: path,
      servers: [{ name: 'rec', written: true }],
    })
    const written = await readFile(path, 'utf8')
    expect(written).toContain('// mine')
    expect(written).toContain('"other": { "command": "other" }')
  })

  it('writes no literal secret, whether the gateway hides it or not', async () => {
    const secret = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'
    const definition = {
      transport: 'http',
      url: 'http://127.0.0.1:1/mcp',
      headers: { Authorization: `Bearer ${secret}` },
    }
    await using other = await serveHere({ servers: { literal: definition } })
    for (const client of ['claude-code', 'claude-desktop', 'codex', 'goose', 'cline', 'librechat']) {
      const exported = await other.run('export', client, '--json')
      expect(exported.stdout + exported.stderr).not.toContain(secret)
      expect(exported.stdout).not.toContain('[secret]')
    }
    const exported = await other.run('export', 'claude-code')
    expect(JSON.parse(exported.stdout).mcpServers.literal.headers.Authorization).toMatch(/^Bearer \$\{LITERAL_\w+\}$/)
    expect(exported.stderr).toContain('literal: headers.Authorization: is a secret')
  })
})
