import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { changeFile } from '../storage/support.ts'
import { freshDatabase } from '../support/postgres.ts'
import { createFolder, recording, runCli, serve, serveWith, until } from './support.ts'

const rules = [{ tools: ['rec_*'], action: 'allow' }]

it('compacts the database of a running gateway and of a stopped one, and says how much it had and has', async () => {
  await using gateway = await serve({ servers: { rec: recording() }, rules })
  const text = 'x'.repeat(100_000)
  const call = async () => (await gateway.run('tools', 'call', 'rec_echo', '--args', JSON.stringify({ text }))).code
  await until(async () => (await call()) === 0 || undefined)
  for (let more = 0; more < 4; more++) expect(await call()).toBe(0)
  const forget = "update audit set body = '{}' where call is not null"
  changeFile(gateway.data, forget)
  const running = await gateway.run('data', 'compact', '--json')
  expect([running.code, running.json()]).toMatchObject([0, { database: 'sqlite' }])
  expect(Number(running.json().after)).toBeLessThan(Number(running.json().before))
  const { stdout } = await gateway.run('audit', 'list', '--tool', 'data', '--json')
  const entry = { kind: 'change', principal: 'user:admin-token', body: { action: 'compacted', ...running.json() } }
  expect(JSON.parse(stdout).items).toMatchObject([entry])

  await gateway.stop()
  changeFile(gateway.data, "update calls set arguments = '{}'")
  const stopped = await gateway.run('data', 'compact')
  expect([stopped.code, stopped.stdout]).toEqual([
    0,
    expect.stringMatching(/^\d+\.\d [kM]B before, \d+\.\d [kM]B after\.\n$/),
  ])
  expect(stopped.stderr).toContain('No gateway runs')
})

it('says on PostgreSQL what to do instead, whether a gateway runs or not', async () => {
  const env = { SALLYPORT_KEY: randomBytes(32).toString('base64'), SALLYPORT_DATABASE_URL: await freshDatabase() }
  await using gateway = await serveWith(env, { servers: {} })
  const running = await gateway.run('data', 'compact')
  expect([running.code, running.stdout]).toEqual([
    0,
    expect.stringMatching(/autovacuum.*VACUUM \(FULL, ANALYZE\).*The database has .*[kM]B/s),
  ])
  await gateway.stop()
  const stopped = await runCli(['data', 'compact', '--data', gateway.data, '--json'], { env })
  expect([stopped.code, stopped.json()]).toMatchObject([0, { advice: expect.stringContaining('autovacuum') }])
})

it('is unreachable where there is neither a gateway nor a database', async () => {
  await using folder = await createFolder()
  expect((await runCli(['data', 'compact', '--data', join(folder.path, 'none')])).code).toBe(4)
})
