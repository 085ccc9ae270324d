import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createFolder, type Folder, runCli, type Served, serveHere } from './support.ts'

let gateway: Served
let home: Folder

beforeAll(async () => {
  home = await createFolder()
  gateway = await serveHere({ servers: { known: { transport: 'http', url: 'https://known.example', enabled: false } } })
})
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await home?.[Symbol.asyncDispose]()
})

const run = (words: string[], input?: string) =>
  runCli(['import', ...words, '--data', gateway.data], {
    cwd: home.path,
    env: { HOME: home.path, XDG_CONFIG_HOME: '', CLAUDE_CONFIG_DIR: '', CODEX_HOME: '' },
    ...(input !== undefined && { input }),
  })

async function write(path: string, value: object): Promise<void> {
  await mkdir(dirname(join(home.path, path)), { recursive: true })
  await writeFile(join(home.path, path), JSON.stringify(value))
}

const server = (host: string) => ({ transport: 'http', url: `https://${host}.example/mcp`, disabled: true })
const token = `ghp_${'a1B2'.repeat(9)}`

it('lists the files of known programs without reading them', async () => {
  await write('.cursor/mcp.json', {})
  await writeFile(join(home.path, '.claude.json'), 'this is not JSON')
  const { code, json } = await run(['--json'])
  expect(code).toBe(0)
  const items = Object(json()).items
  expect(items.map(({ client }: { client: string }) => client)).toEqual(['claude-code', 'cursor'])
})

it('shows a preview that fits 80 columns, and the command that saves it', async () => {
  await write('file.json', {
    mcpServers: {
      known: server('other'),
      'Team Search': { ...server('search'), headers: { Authorization: `Bearer ${token}` }, autoApprove: ['*'] },
    },
  })
  const { code, stdout, stderr } = await run(['file.json'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/NAME\s+OUTCOME\s+REACHED/)
  expect(stdout).toMatch(/Team-Search\s+new\s+http https:\/\/search\.example\/mcp/)
  expect(stdout).toContain('TEAM_SEARCH_AUTHORIZATION, for Team-Search')
  expect(stdout + stderr).not.toContain(token)
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  expect(stderr).toContain('import file.json --apply --replace known')
})

it('saves with --apply, and reads the text from standard input', async () => {
  const text = JSON.stringify({ mcpServers: { piped: server('piped') } })
  const { code, json } = await run(['-', '--apply', '--json'], text)
  expect({ code, document: json() }).toMatchObject({
    code: 0,
    document: { servers: [{ name: 'piped', title: 'piped', outcome: 'new', saved: true }], reported: [] },
  })
  const again = await run(['-', '--json'], text)
  expect(Object(again.json()).servers).toMatchObject([{ outcome: 'same' }])
})

it('sends only the servers of a program whose file has more', async () => {
  await write('.claude.json', {
    oauthAccount: { token },
    history: ['x'.repeat(2_000_000)],
    mcpServers: { big: { type: 'http', url: 'https://big.example/mcp' } },
  })
  const { code, json } = await run(['claude-code', '--json'])
  expect(code).toBe(0)
  expect(Object(json()).servers).toMatchObject([{ name: 'big', outcome: 'new' }])
})

it('ends with 8 when a saved server is not connected', async () => {
  const text = JSON.stringify({ mcpServers: { gone: { transport: 'http', url: 'http://127.0.0.1:9/mcp' } } })
  const { code, json } = await run(['-', '--apply', '--json'], text)
  expect({ code, saved: Object(json()).servers }).toMatchObject({ code: 8, saved: [{ name: 'gone', saved: true }] })
})

it.each([
  ['a file that does not exist', ['missing.json'], undefined],
  ['a text without servers', ['-'], '{ "a": 1 }'],
  ['a text that cannot be read', ['-'], '{'],
])('ends with 2 for %s', async (_, words, input) => {
  expect(await run(words, input)).toMatchObject({ code: 2, stdout: '' })
})
