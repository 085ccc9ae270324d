import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { emptyDatabase } from '../support/postgres.ts'
import { runCli, serveWith } from './support.ts'

it('moves a gateway from its file to a PostgreSQL, with its tokens and its record', async () => {
  const keys = { SALLYPORT_KEY: randomBytes(32).toString('base64') }
  await using old = await serveWith(keys, { servers: {} })
  const file = join(old.folder, 'sallyport.backup')
  const { token } = (await old.run('tokens', 'create', '--agent', 'reviewer', '--json')).json()
  const saved = await old.run('backup', file, '--json')
  expect([saved.code, saved.json()]).toMatchObject([0, { file, database: 'sqlite', place: old.data }])
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')

  const env = { ...keys, SALLYPORT_DATABASE_URL: await emptyDatabase() }
  const restored = await runCli(['restore', file], { env })
  expect([restored.code, restored.stdout]).toEqual([0, expect.stringMatching(/^Restored \d+ rows of backup_/)])
  const again = await runCli(['restore', file], { env })
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('already')])

  await using moved = await serveWith(env, { servers: {} })
  const tools = await runCli(['tools', 'list', '--json', '--url', moved.url, '--token', String(token)])
  expect([tools.code, tools.json()]).toMatchObject([0, { items: [] }])
  expect((await moved.run('status', '--json')).json()).toMatchObject({ storage: { kind: 'postgresql', healthy: true } })
  expect((await moved.run('audit', 'list', '--json')).stdout).toContain('token-created')
  const proof = await moved.run('audit', 'verify', '--json')
  expect(proof.json()).toMatchObject({ chains: 2, notices: [expect.stringContaining('restored from a backup')] })
  const said = [restored, again].flatMap(({ stdout, stderr }) => [stdout, stderr])
  expect([...said, moved.stdout(), moved.stderr()].join()).not.toContain('a-password-for-tests')
})
