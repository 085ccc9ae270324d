import { writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { call, namesOf, recordingServer, textOf } from '../governance/support.ts'
import { ended, isAlive } from './support.ts'

/** The process behind a recording server, by its own file. */
async function pidOf(
  gateway: TestGateway,
  name: string,
  recording: ReturnType<typeof recordingServer>,
): Promise<number> {
  await call(gateway, `${name}_read_thing`)
  return (await recording.lines()).at(-1)?.pid ?? 0
}

function slowly(gateway: TestGateway, name: string): Promise<string> {
  return call(gateway, `${name}_echo`, { given: { text: 'still here', delayMs: 1500 } }).then(textOf)
}

it('connects what was added, ends what was removed, and leaves the rest alone with its calls in flight', async () => {
  const [stays, goes, comes] = [recordingServer(), recordingServer(), recordingServer()]
  await using gateway = await startTestGateway({ servers: { stays: stays.server, goes: goes.server } })
  const staying = await pidOf(gateway, 'stays', stays)
  const going = await pidOf(gateway, 'goes', goes)
  const inFlight = slowly(gateway, 'stays')

  await gateway.writeConfig({ servers: { comes: comes.server, stays: stays.server } })
  await gateway.reach('comes', 'connected')
  await ended(going)
  expect(await inFlight).toBe('still here')
  expect(await pidOf(gateway, 'stays', stays)).toBe(staying)
  expect(gateway.gateway.servers.list().map(({ name }) => name)).toEqual(['stays', 'comes'])
  expect(namesOf(gateway)).toContain('comes_echo')
  expect(namesOf(gateway)).not.toContain('goes_echo')
  expect(await call(gateway, 'goes_echo')).toMatchObject({ error: { code: 'tool-not-found' } })
  const { items } = await gateway.gateway.audit.list({ limit: 10, kind: 'change', subject: 'config' })
  expect(items).toMatchObject([{ principal: 'file', body: { changed: ['servers.goes', 'servers.comes'] } }])
})

it('replaces a server whose definition changed: the old process ends, the new one has the new settings', async () => {
  const changing = recordingServer()
  await using gateway = await startTestGateway({
    servers: { changing: { ...changing.server, env: { COLOUR: 'red' } } },
  })
  const before = await pidOf(gateway, 'changing', changing)
  await gateway.writeConfig({ servers: { changing: { ...changing.server, env: { COLOUR: 'blue' } } } })
  await ended(before)
  await gateway.reach('changing', 'connected')
  expect(textOf(await call(gateway, 'changing_environment'))).toContain('"COLOUR":"blue"')
  expect(await pidOf(gateway, 'changing', changing)).not.toBe(before)
})

it('applies what does not concern the link without cutting it', async () => {
  const files = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: files.server } })
  const before = await pidOf(gateway, 'files', files)
  const inFlight = slowly(gateway, 'files')
  const tools = { exclude: ['destroy_*'], override: { write_thing: { risk: 'read' as const } } }
  await gateway.writeConfig({
    servers: { files: { ...files.server, description: 'Files', trust: 'none', tools } },
    naming: 'mcp_{server}_{tool}',
    limits: { result: 1024 },
  })
  await poll(() => namesOf(gateway).includes('mcp_files_echo') || undefined)
  expect(namesOf(gateway)).not.toContain('mcp_files_destroy_thing')
  expect(await call(gateway, 'mcp_files_write_thing')).toMatchObject({ kind: 'answered' })
  expect(await call(gateway, 'mcp_files_read_thing')).toMatchObject({ kind: 'waiting' })
  expect(await inFlight).toBe('still here')
  expect((await files.lines()).map(({ pid }) => pid)).toEqual(Array(3).fill(before))
})

it('switches a server off and on again', async () => {
  const files = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: files.server } })
  const before = await pidOf(gateway, 'files', files)
  await gateway.writeConfig({ servers: { files: { ...files.server, enabled: false } } })
  await gateway.reach('files', 'disabled')
  await ended(before)
  expect(namesOf(gateway)).toEqual([])
  expect(gateway.gateway.status().healthy).toBe(true)
  await gateway.writeConfig({ servers: { files: files.server } })
  await gateway.reach('files', 'connected')
  expect(namesOf(gateway)).toContain('files_echo')
})

it.each([
  ['is not JSON', (text: string) => text.replace('{', '{{')],
  ['has an unknown key', (text: string) => text.replace('"servers"', '"servres"')],
  ['has a wrong value', (text: string) => text.replace('"stdio"', '"telepathy"')],
])('changes nothing when the file %s, says so, and applies the mended one', async (_, spoil) => {
  const [files, more] = [recordingServer(), recordingServer()]
  const rejected: string[] = []
  const config: ConfigInput = { servers: { files: files.server } }
  await using gateway = await startTestGateway(config)
  gateway.gateway.events.on('config-rejected', ({ problems }) => rejected.push(...problems))
  const before = await pidOf(gateway, 'files', files)
  const wanted = { ...config, servers: { files: files.server, more: more.server } }
  await writeFile(gateway.configFile, `${spoil(JSON.stringify(wanted, null, 2))}\n`)
  const { problems } = await poll(() => {
    const { config: shown } = gateway.gateway.status()
    return shown.problems.length > 0 ? shown : undefined
  })
  expect(problems[0]).toMatch(/sallyport\.json:\d+/)
  expect(rejected).toEqual(problems)
  expect(gateway.gateway.servers.list().map(({ name, state }) => `${name} ${state}`)).toEqual(['files connected'])
  expect(await pidOf(gateway, 'files', files)).toBe(before)

  await gateway.writeConfig(wanted)
  await gateway.reach('more', 'connected')
  expect(gateway.gateway.status().config.problems).toEqual([])
  expect(isAlive(before)).toBe(true)
})

it('applies a changed rule to the very next call', async () => {
  const files = recordingServer()
  const servers = { files: files.server }
  await using gateway = await startTestGateway({ servers, rules: [{ action: 'allow' }] })
  expect(await call(gateway, 'files_write_thing')).toMatchObject({ kind: 'answered' })
  const applied = Promise.withResolvers<void>()
  gateway.gateway.events.on('config-changed', () => applied.resolve())
  await gateway.writeConfig({ servers, rules: [{ action: 'deny' }] })
  await applied.promise
  expect(await call(gateway, 'files_write_thing')).toMatchObject({ error: { code: 'call-denied' } })
  expect(await call(gateway, 'files_read_thing')).toMatchObject({ error: { code: 'call-denied' } })
  expect(await files.received()).toEqual(['write_thing'])
})

it('connects a server that lacked a variable as soon as the variable is listed', async () => {
  const files = recordingServer()
  const servers = { files: { ...files.server, env: { TOKEN: '${MY_TOKEN}' } } }
  await using gateway = await startTestGateway({ servers }, { environment: { MY_TOKEN: 'abc' } })
  expect((await gateway.reach('files', 'failed')).error).toMatchObject({
    code: 'variable-missing',
    message: expect.stringContaining('MY_TOKEN (set, but not listed under `environment`)'),
  })
  await gateway.writeConfig({ servers, environment: ['MY_TOKEN'] })
  await gateway.reach('files', 'connected')
  expect(textOf(await call(gateway, 'files_environment'))).toContain('"TOKEN":"abc"')
})

it('tells of calls in flight on a removed server how they ended: a read failed, of a write nobody knows', async () => {
  const [reads, writes] = [recordingServer(), recordingServer()]
  const tools = { override: { echo: { risk: 'write' as const } } }
  await using gateway = await startTestGateway({
    servers: { reads: reads.server, writes: { ...writes.server, tools } },
    rules: [{ action: 'allow' }],
  })
  const slow = ['reads_echo', 'writes_echo'].map((name) =>
    call(gateway, name, { given: { text: 'slow', delayMs: 60_000 } }),
  )
  await poll(async () => (await reads.lines()).length + (await writes.lines()).length === 2 || undefined)
  await gateway.writeConfig({ rules: [{ action: 'allow' }] })
  expect(await Promise.all(slow)).toMatchObject([
    { kind: 'refused', error: { code: 'server-unavailable' }, call: { state: 'failed' } },
    { kind: 'refused', error: { code: 'call-unknown' }, call: { state: 'unknown' } },
  ])
  expect(gateway.gateway.servers.list()).toEqual([])
})
