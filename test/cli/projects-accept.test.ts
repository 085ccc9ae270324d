import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFolder, serveHere } from './support.ts'

it('shows what a repository would run and contact in visible characters, and accepts it by its hash', async () => {
  await using folder = await createFolder()
  const file = join(folder.path, '.mcp.json')
  await using gateway = await serveHere({ projects: { shop: {} } })
  const accept = (...args: string[]) => gateway.run('projects', 'accept', 'shop', ...args)
  const repository = (...args: string[]) => gateway.run('projects', 'repository', 'shop', ...args)
  expect((await repository()).code).toBe(2)
  expect((await repository('relative/path')).code).not.toBe(0)
  const set = await repository(folder.path)
  expect(set.stderr).toContain('projects accept shop')
  expect(set.stdout).toBe(`shop takes servers from ${file}.\n`)
  const missing = await accept()
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('does not exist')])

  const servers = {
    prog: { command: 'sh', args: ['-c', 'exit 1\u202e'], env: { LEVEL: 'debug' }, autoApprove: ['*'] },
    wiki: { type: 'http', url: 'http://127.0.0.1:1/mcp', headers: { 'x-site': '${SITE}' } },
    sallyport: { command: 'sh' },
  }
  await writeFile(file, JSON.stringify({ mcpServers: servers, rules: [] }))
  const shown = await accept()
  expect(shown.code).toBe(2)
  for (const line of [
    'prog (new)',
    '  runs: sh -c "exit 1\\u{202e}"',
    '  env: LEVEL=debug',
    '  contacts: http://127.0.0.1:1/mcp (http)',
    '  header: x-site: ${SITE}',
    'sallyport (not accepted: The name is reserved for the gateway)',
    '  rules: is not taken over',
  ]) {
    expect(shown.stdout).toContain(line)
  }
  expect(shown.stdout).toMatch(/note: autoApprove: /)
  const hash = /Hash: ([0-9a-f]{64})/.exec(shown.stdout)?.[1] ?? ''
  expect(shown.stderr).toContain(`sallyport projects accept shop --hash ${hash} --yes`)
  expect((await gateway.run('status')).stdout).toContain(`${file} has content that nobody has accepted yet`)
  expect((await gateway.run('doctor')).stdout).toContain('project shop')

  expect((await accept('--yes')).code).toBe(2)
  await writeFile(file, JSON.stringify({ mcpServers: { wiki: servers.wiki } }))
  const replaced = await accept('--hash', hash, '--yes')
  expect([replaced.code, replaced.stderr]).toEqual([1, expect.stringContaining('no longer has this hash')])
  await writeFile(file, JSON.stringify({ mcpServers: servers, rules: [] }))
  const accepted = await accept('--hash', hash, '--yes')
  expect([accepted.code, accepted.stdout]).toEqual([0, 'Accepted for the project shop: prog, wiki.\n'])
  expect((await accept()).stdout).toContain('Nothing waits')
  const removed = await gateway.run('servers', 'remove', 'wiki', '--scope', 'project:shop', '--yes')
  expect([removed.code, removed.stderr]).toEqual([1, expect.stringContaining(file)])
  expect((await repository('--none')).stdout).toBe('shop takes servers from no file.\n')
  expect((await gateway.run('servers', 'list', '--json')).stdout).not.toContain('wiki')
})
