import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCli } from '../../cli/support.ts'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { numbersUpTo } from '../../storage/support.ts'
import { poll } from '../../support/gateway.ts'
import { rounds } from '../../support/rounds.ts'
import { connected, preparePlace, readCalls, recordingPlace, serveArguments } from './process.ts'
import { ended, isGone } from './support.ts'

it('says on one line that it is ready, and keeps its files to itself', async () => {
  const place = await preparePlace({})
  const gateway = await place.start()
  expect(gateway.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  const modes = ['', 'admin-token', 'sallyport.db', 'sallyport.db-wal', 'gateway.lock', 'gateway.json'].map(
    async (name) => [name, ((await stat(join(place.data, name))).mode & 0o777).toString(8)],
  )
  expect(await Promise.all(modes)).toEqual([
    ['', '700'],
    ['admin-token', '600'],
    ['sallyport.db', '600'],
    ['sallyport.db-wal', '600'],
    ['gateway.lock', '600'],
    ['gateway.json', '600'],
  ])
  expect(JSON.parse(await readFile(join(place.data, 'gateway.json'), 'utf8'))).toMatchObject({
    url: gateway.url,
    pid: gateway.pid,
  })
  expect(await gateway.end('SIGTERM')).toEqual({ code: 0, signal: null })
  await expect(stat(join(place.data, 'gateway.json'))).rejects.toMatchObject({ code: 'ENOENT' })
})

it('refuses a data folder that another gateway has, and names it', async () => {
  const place = await preparePlace({})
  const gateway = await place.start()
  const second = await runCli([...serveArguments(place.folder, place.data), '--json'])
  expect(second.code).toBe(1)
  expect(second.json()).toMatchObject({
    error: { code: 'data-locked', details: { pid: gateway.pid, url: gateway.url } },
  })
  expect((await gateway.rest('/readyz')).status).toBe(200)
})

it('tells after a kill -9 that nobody knows how the call in flight ended, and never makes it again', async () => {
  const { files, place } = await recordingPlace()
  const first = await place.start()
  await connected(first)
  const client = await first.connect('legacy')
  const inFlight = ['files_echo', 'files_echo'].map((name, n) =>
    client.callTool({ name, arguments: { text: 'slow', delayMs: 60_000, n } }).then(
      () => 'answered',
      () => 'broken',
    ),
  )
  await poll(async () => (await files.lines()).length === 2 || undefined)
  expect(await first.end('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' })
  expect(await Promise.all(inFlight)).toEqual(['broken', 'broken'])
  expect(readCalls(place.reader())).toMatchObject([{ state: 'running' }, { state: 'running' }])

  const second = await place.start()
  await connected(second)
  const unknown = { state: 'unknown', intents: 1, outcomes: 1 }
  expect(readCalls(place.reader())).toMatchObject([unknown, unknown])
  const told = await second.rest('/api/calls?state=unknown')
  expect(told.body.items).toMatchObject([{ error: { code: 'call-unknown' } }, { error: { code: 'call-unknown' } }])
  expect(await second.end('SIGTERM')).toEqual({ code: 0, signal: null })

  const third = await place.start()
  await connected(third)
  expect(readCalls(place.reader())).toMatchObject([unknown, unknown])
  expect(await files.lines()).toHaveLength(2)
  expect(await third.end('SIGTERM')).toEqual({ code: 0, signal: null })
})

it('has an intent for everything that reached the server, and runs nothing twice, however often it is killed under load', async () => {
  const { files, place } = await recordingPlace()
  let n = 0
  for (const enough of rounds([60, 200], [50, 120, 300])) {
    const gateway = await place.start()
    await connected(gateway)
    const client = await gateway.connect('legacy')
    const write = () => client.callTool({ name: 'files_write_thing', arguments: { n: ++n } })
    const load = numbersUpTo(10).map(async () => {
      while (
        await write().then(
          () => true,
          () => false,
        )
      );
    })
    await poll(async () => (await files.lines()).length > enough || undefined)
    await gateway.end('SIGKILL')
    await Promise.all(load)
  }
  const last = await place.start()
  await connected(last)
  expect(await last.end('SIGTERM')).toEqual({ code: 0, signal: null })

  const calls = readCalls(place.reader())
  for (const { intents, outcomes } of calls) expect([intents, outcomes]).toEqual([1, 1])
  expect(new Set(calls.map(({ state }) => state))).toEqual(new Set(['ok', 'unknown']))
  const received = (await files.lines()).map((line) => line.arguments?.n)
  expect(new Set(received).size).toBe(received.length)
  const recorded = new Set(calls.map((row) => row.n))
  expect(received.filter((number) => !recorded.has(number))).toEqual([])
})

it('ends at the next start what a gateway killed with -9 left running, grandchildren included', async () => {
  const place = await preparePlace({ servers: { stubborn: stdioFixture('hostile', ['grandchildren']) } })
  const first = await place.start()
  await connected(first)
  const client = await first.connect('legacy')
  const told = await client.callTool({ name: 'stubborn_pids', arguments: {} })
  const [{ text }] = Object(told).content
  const { child, grandchild }: Record<string, number> = JSON.parse(text)
  if (child === undefined || grandchild === undefined) throw new Error('It has no grandchild')
  await first.end('SIGKILL')
  expect(await isGone(grandchild)).toBe(false)

  const second = await place.start()
  expect(second.stderr()).not.toContain('Error')
  await ended(child)
  await ended(grandchild)
  await connected(second)
  expect(await second.end('SIGTERM')).toEqual({ code: 0, signal: null })
})
