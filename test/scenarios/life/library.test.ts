import { mkdir, readdir, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { adminToken } from '../../../src/identity/identity.ts'
import { readerOf, temporaryFolder } from '../../storage/support.ts'
import { poll, quickSupervision } from '../../support/gateway.ts'
import { agent, call, everything, namesOf, recordingServer, textOf } from '../governance/support.ts'
import { ended } from './support.ts'

async function prepare(config: object) {
  const folder = temporaryFolder()
  const configFile = join(folder, 'sallyport.json')
  await writeFile(configFile, JSON.stringify(config))
  const dataFolder = join(folder, 'data')
  return { configFile, dataFolder, supervision: quickSupervision, graceMs: 200 }
}

it('connects, lists, calls and closes inside another program, and leaves nothing behind', async () => {
  const files = recordingServer()
  const options = await prepare({ servers: { files: files.server }, rules: [{ tools: '*_write_*', action: 'allow' }] })
  const handles = () =>
    process.getActiveResourcesInfo().filter((name) => /Process|Pipe|Worker|MessagePort|FSEvent|Server/.test(name))
  const before = handles()
  const gateway = await createGateway(options)
  await poll(() => gateway.servers.list().every(({ state }) => state === 'connected') || undefined)
  expect(namesOf({ gateway })).toContain('files_write_thing')
  expect(textOf(await call({ gateway }, 'files_write_thing', { given: { a: 1 } }))).toBe('{"a":1}')
  expect(gateway.status()).toMatchObject({ healthy: true, config: { file: options.configFile, problems: [] } })
  const [line] = await files.lines()

  await Promise.all([gateway.close(), gateway.close()])
  await ended(line?.pid ?? 0)
  await expect(call({ gateway }, 'files_read_thing')).rejects.toMatchObject({ code: 'shutting-down' })
  await poll(() => handles().length <= before.length || undefined)
  const rows = readerOf(options.dataFolder).all('select state from calls')
  expect(rows).toEqual([{ state: 'ok' }])
  expect(readerOf(options.dataFolder).all('select ended_at from instances where ended_at is null')).toEqual([])
  expect(readerOf(options.dataFolder).all('select pid from children')).toEqual([])
})

it('opens the same folder again, with everything in it', async () => {
  const files = recordingServer()
  const options = await prepare({ servers: { files: files.server } })
  const first = await createGateway(options)
  await poll(() => namesOf({ gateway: first }).length > 0 || undefined)
  const made = await first.tokens.create(adminToken, { agent: 'kim' })
  const { call: ran } = await call({ gateway: first }, 'files_read_thing')
  await first.close()
  const second = await createGateway(options)
  expect(second.instance).not.toBe(first.instance)
  expect(await second.calls.find(ran.id)).toMatchObject({ id: ran.id, state: 'ok', instance: first.instance })
  expect(second.identity.authenticate(made.token)).toMatchObject({ kind: 'agent', name: 'kim' })
  await second.close()
})

it('ends calls that are still under way when it closes, and says so in the record', async () => {
  const files = recordingServer()
  const options = await prepare({ servers: { files: files.server }, rules: [{ action: 'allow' }] })
  const gateway = await createGateway(options)
  await poll(() => namesOf({ gateway }).length > 0 || undefined)
  const reading = call({ gateway }, 'files_echo', { given: { text: 'slow', delayMs: 60_000 } })
  await poll(async () => (await files.lines())[0])
  await gateway.close()
  expect(await reading).toMatchObject({
    kind: 'refused',
    error: { code: 'shutting-down' },
    call: { state: 'cancelled' },
  })
  expect(readerOf(options.dataFolder).all('select state from calls')).toEqual([{ state: 'cancelled' }])
})

it('gives calls that are under way the time to finish', async () => {
  const files = recordingServer()
  const options = await prepare({ servers: { files: files.server } })
  const gateway = await createGateway({ ...options, graceMs: 10_000 })
  await poll(() => namesOf({ gateway }).length > 0 || undefined)
  const reading = call({ gateway }, 'files_echo', { given: { text: 'done', delayMs: 300 } })
  await poll(async () => (await files.lines())[0])
  await gateway.close()
  expect(textOf(await reading)).toBe('done')
})

it('refuses a folder that another gateway has, and lets go of everything when a start fails', async () => {
  const options = await prepare({})
  const first = await createGateway(options)
  await expect(createGateway(options)).rejects.toMatchObject({ code: 'data-locked' })
  await first.close()

  await mkdir(join(options.dataFolder, 'broken'))
  const broken = { ...options, dataFolder: join(options.dataFolder, 'broken') }
  await mkdir(join(broken.dataFolder, 'admin-token'))
  await expect(createGateway(broken)).rejects.toThrow()
  await rmdir(join(broken.dataFolder, 'admin-token'))
  const second = await createGateway(broken)
  expect(second.catalog.listTools(agent('a'), everything)).toEqual([])
  await second.close()
  const left = ['admin-token', 'anchors.jsonl', 'audit-key', 'gateway.lock', 'key', 'sallyport.db']
  expect((await readdir(broken.dataFolder)).sort()).toEqual(left)
})

it('refuses to start with a broken configuration, and leaves no data folder behind', async () => {
  const options = await prepare({ servres: {} })
  await expect(createGateway(options)).rejects.toMatchObject({ code: 'config-invalid' })
  await expect(readdir(options.dataFolder)).rejects.toMatchObject({ code: 'ENOENT' })
})
