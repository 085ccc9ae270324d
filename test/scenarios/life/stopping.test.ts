import { expect, it } from 'vitest'
import { numbersUpTo } from '../../storage/support.ts'
import { poll } from '../../support/gateway.ts'
import { connected, readCalls, recordingPlace } from './process.ts'
import { isGone } from './support.ts'

it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 on %s under load and loses no entry', async (signal) => {
  const { files, place } = await recordingPlace()
  const gateway = await place.start()
  await connected(gateway)
  const clients = [await gateway.connect('auto'), await gateway.connect('legacy')]
  const slow = clients.map((client, n) =>
    client.callTool({ name: 'files_echo', arguments: { text: 'slow', delayMs: 60_000, n: -1 - n } }).catch(() => {}),
  )
  let n = 0
  const load = numbersUpTo(8).map(async (worker) => {
    for (;;) {
      const client = clients[worker % clients.length]
      const name = worker % 3 === 0 ? 'files_read_thing' : 'files_write_thing'
      if (
        !(await client?.callTool({ name, arguments: { n: ++n } }).then(
          () => true,
          () => false,
        ))
      )
        return
    }
  })
  await poll(async () => (await files.lines()).length > 200 || undefined)
  expect(await gateway.end(signal)).toEqual({ code: 0, signal: null })
  await Promise.all([...load, ...slow])

  const lines = await files.lines()
  const calls = new Map(readCalls(place.reader()).map((row) => [row.n, row]))
  for (const line of lines) expect(calls.get(line.arguments?.n)).toMatchObject({ intents: 1, outcomes: 1 })
  for (const row of calls.values()) expect([row.outcomes, row.state === 'running']).toEqual([1, false])
  expect([calls.get(-1)?.state, calls.get(-2)?.state]).toEqual(['unknown', 'unknown'])
  for (const pid of new Set(lines.map((line) => line.pid))) expect(await isGone(pid)).toBe(true)
  expect(place.reader().all('select id from instances where ended_at is null')).toEqual([])
  expect(place.reader().all('select pid from children')).toEqual([])
})

it.each(['auto', 'legacy'] as const)(
  'lets a call that is under way finish before it ends (%s client)',
  async (mode) => {
    const { files, place } = await recordingPlace()
    const gateway = await place.start()
    await connected(gateway)
    const client = await gateway.connect(mode)
    const call = client.callTool({ name: 'files_echo', arguments: { text: 'finished', delayMs: 1500, n: 1 } })
    call.catch(() => {})
    await poll(async () => (await files.lines())[0])
    expect(await gateway.end('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(await call).toMatchObject({ content: [{ text: 'finished' }] })
    expect(readCalls(place.reader())).toMatchObject([{ state: 'ok', intents: 1, outcomes: 1 }])
  },
)
