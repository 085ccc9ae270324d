import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { poll } from '../../support/gateway.ts'
import { temporaryFolder } from '../mcp/raw.ts'

const root = resolve(import.meta.dirname, '../../..')
const inspector = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json'))
const run = promisify(execFile)

/** What `npm start` runs, with a free port and a folder of its own. */
function start(data: string) {
  const child = spawn(process.execPath, [join(root, 'scripts/start.mjs'), '--port', '0', '--data', data], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { out: '', error: '' }
  child.stdout.on('data', (chunk) => {
    said.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    said.error += chunk
  })
  return { child, said }
}

it('prints on `npm start` a line with which a real client lists and calls the demo server', async () => {
  await using folder = await temporaryFolder()
  const { child, said } = start(join(folder.path, 'data'))
  const ended = once(child, 'exit')
  try {
    const ready = await poll(() => /^sallyport ready (\S+)$/m.exec(said.out)?.[1], 60_000)
    await poll(() => (said.error.includes('connected demo, 5 tools') ? true : undefined), 30_000)
    const [, url = '', header = ''] =
      /claude mcp add --transport http sallyport (\S+) --header "([^"]+)"/.exec(said.error) ?? []
    expect(url).toBe(`${ready}/mcp`)

    const inspect = async (...args: string[]): Promise<string> => {
      const program = [join(inspector, 'clients/launcher/build/index.js'), '--cli', url, '--transport', 'http']
      const options = ['--header', header, '--stored-auth-only', '--format', 'json', '--quiet']
      const env = { PATH: process.env.PATH, HOME: folder.path, TMPDIR: process.env.TMPDIR }
      return (await run(process.execPath, [...program, ...options, ...args], { env, cwd: folder.path })).stdout
    }
    expect(await inspect('--method', 'tools/list')).toContain('demo_list_notes')
    expect(await inspect('--method', 'tools/call', '--tool-name', 'demo_list_notes')).toContain('welcome')
  } finally {
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  }
})
