import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { temporaryFolder } from '../../storage/support.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { call, recordingServer } from '../governance/support.ts'
import { call as callAs } from '../servers/support.ts'

const tools = { override: { echo: { risk: 'write' as const } } }
const rules = [{ tools: ['files_*', 'bad_*'], action: 'allow' as const }]
const slow = { text: 'slow', delayMs: 60_000 }

async function startWithSlow(graceMs: number) {
  const files = recordingServer()
  const servers = { files: { ...files.server, tools }, reads: files.server }
  const gateway = await startTestGateway({ servers, rules }, { graceMs })
  await gateway.reach('files', 'connected')
  await gateway.reach('reads', 'connected')
  return { gateway, files }
}

/** The recorded ends of calls of a tool, with their reasons. */
async function endsOf({ gateway }: TestGateway, tool: string) {
  return poll(async () => {
    const { items } = await gateway.calls.list({ limit: 10 })
    const found = items.filter((each) => each.tool === tool && each.state !== 'running')
    return found.length > 0 ? found.map(({ state, error }) => ({ state, ...error })) : undefined
  })
}

it.each(['v1', 'v2'] as const)(
  'a stop of the gateway is told as that, to the agent and to the server (%s)',
  async (version) => {
    const { gateway, files } = await startWithSlow(50)
    const client = version === 'v1' ? await gateway.connectV1('tester') : await gateway.connectV2('tester')
    const writing = client.callTool({ name: 'files_echo', arguments: slow })
    const reading = client.callTool({ name: 'reads_echo', arguments: slow })
    const told = Promise.all([writing, reading].map((each) => each.then(JSON.stringify, String)))
    await poll(async () => (await files.received()).length > 1 || undefined)
    await gateway.stop()
    const [write = '', read = ''] = await told
    expect(write).toContain('The gateway stopped before the server answered; whether the call took effect is not known')
    expect(read).toContain('The gateway stopped before the server answered')
    expect(write + read).not.toMatch(/caller|cancelled/i)
    await gateway.close()
  },
)

it('a stop of the gateway is told as that by REST, and recorded so', async () => {
  const { gateway, files } = await startWithSlow(50)
  const ended: unknown[] = []
  gateway.gateway.events.on('call-ended', ({ call: { tool, state, error } }) => ended.push({ tool, state, ...error }))
  const post = (tool: string) =>
    gateway.fetch('tester', `/api/tools/${tool}/call`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ arguments: slow }),
    })
  const answers = Promise.all([post('files_echo'), post('reads_echo')])
  await poll(async () => (await files.received()).length > 1 || undefined)
  await gateway.stop()
  const [write, read] = await answers
  expect([write?.status, read?.status]).toEqual([502, 503])
  const message = 'The gateway stopped before the server answered'
  expect(await read?.json()).toMatchObject({ error: { code: 'shutting-down', message } })
  expect(await write?.json()).toMatchObject({
    error: { code: 'call-unknown', message: expect.stringContaining(message) },
  })
  expect(ended).toContainEqual(
    expect.objectContaining({ tool: 'reads_echo', state: 'cancelled', code: 'shutting-down' }),
  )
  expect(ended).toContainEqual(
    expect.objectContaining({ tool: 'files_echo', state: 'unknown', message: expect.stringContaining(message) }),
  )
  await gateway.close()
})

it('a caller who cancels is named also while the gateway stops', async () => {
  const { gateway, files } = await startWithSlow(20_000)
  const controller = new AbortController()
  const running = call(gateway, 'reads_echo', { given: slow, signal: controller.signal })
  await poll(async () => (await files.received()).length > 0 || undefined)
  const stopping = gateway.stop()
  controller.abort()
  expect(await running).toMatchObject({
    kind: 'refused',
    error: { code: 'call-cancelled', message: 'The caller cancelled the call' },
  })
  await stopping
  await gateway.close()
})

it.each<[what: string, end: (gateway: TestGateway) => Promise<void>, reason: string]>([
  [
    'reconnected',
    ({ gateway }) => gateway.servers.reconnect(operator, 'bad').then(() => {}),
    'a reconnect was requested',
  ],
  ['removed', ({ gateway }) => gateway.servers.remove(operator, 'bad'), 'its configuration was changed or removed'],
  [
    'switched off',
    ({ gateway }) => gateway.servers.enable(operator, 'bad', false).then(() => {}),
    'its configuration was changed or removed',
  ],
])('a call on a server that is %s says that the gateway ended it, and why', async (_, end, reason) => {
  const record = join(temporaryFolder(), 'record.jsonl')
  const bad = stdioFixture('hostile', ['never-answer', '--record', record])
  await using gateway = await startTestGateway({ servers: { bad }, rules })
  await gateway.reach('bad', 'connected')
  const client = await gateway.connectV1('tester')
  const [read, write] = [callAs(client, 'bad_trigger'), callAs(client, 'bad_trigger_write')]
  await poll(async () => (await readRecord(record)).length === 2 || undefined)
  await end(gateway)
  const closed = `The gateway closed the connection to the server: ${reason}`
  expect((await read).text).toContain(closed)
  expect((await write).text).toContain(`${closed}; whether the call took effect is not known`)
  expect(await endsOf(gateway, 'bad_trigger')).toMatchObject([{ state: 'failed', message: closed }])
})

it('a program that does not answer a ping is ended with that reason', async () => {
  const supervision = { idleMs: 100, proofTimeoutMs: 300 }
  await using gateway = await startTestGateway(
    { servers: { bad: stdioFixture('hostile', ['stop-reading']) }, rules },
    { supervision },
  )
  const error = await poll(() => gateway.gateway.servers.get(undefined, 'bad').error)
  expect(error.message).toBe(
    'The gateway closed the connection: the server was silent and did not answer a check within 300 ms',
  )
  expect(error.hint).not.toContain('timeout.connect')
})

it('a program that something else has killed is told apart from one that ended', async () => {
  const files = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: { ...files.server, tools } }, rules })
  await gateway.reach('files', 'connected')
  const client = await gateway.connectV1('tester')
  const waiting = callAs(client, 'files_echo', slow)
  const [line] = await poll(async () => ((await files.lines()).length > 0 ? files.lines() : undefined))
  process.kill(Number(line?.pid), 'SIGKILL')
  expect((await waiting).text).toContain('The program was ended by SIGKILL, not by the gateway')
  const error = await poll(() => gateway.gateway.servers.get(undefined, 'files').error)
  expect(error.hint).toContain('out of memory')
})

const operator = { kind: 'user', name: 'admin-token', role: 'administrator' } as const
