import { join } from 'node:path'
import { expect, it } from 'vitest'
import { howItWent } from '../../calls/support.ts'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { numbersUpTo, readerOf, temporaryFolder } from '../../storage/support.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { call, recordingServer, textOf } from './support.ts'

type Way = { ends: readonly string[]; ask(gateway: TestGateway, n: number): ReturnType<typeof call> }

function cancelled(gateway: TestGateway, tool: string, n: number): ReturnType<typeof call> {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), n % 50)
  return call(gateway, tool, { given: { text: 'x', delayMs: 60_000, n }, signal: controller.signal })
}

/** A server that crashes takes along whoever is with it at that moment. */
const crashed = ['failed', 'server-broken', 'server-unavailable', 'call-unknown']
const ways: readonly Way[] = [
  { ends: ['ok'], ask: (gateway, n) => call(gateway, 'files_read_thing', { given: { n } }) },
  { ends: ['ok'], ask: (gateway, n) => call(gateway, 'files_write_thing', { given: { n } }) },
  { ends: ['tool-error'], ask: (gateway) => call(gateway, 'files_fail') },
  { ends: ['failed'], ask: (gateway) => call(gateway, 'errors_trigger_write') },
  { ends: ['call-unknown'], ask: (gateway) => call(gateway, 'silent_trigger_write') },
  { ends: ['call-timeout'], ask: (gateway) => call(gateway, 'silent_trigger') },
  { ends: ['call-cancelled'], ask: (gateway, n) => cancelled(gateway, 'files_echo', n) },
  { ends: crashed, ask: (gateway) => call(gateway, 'crashing_trigger') },
  { ends: crashed, ask: (gateway) => call(gateway, 'dying_trigger_write') },
  { ends: ['call-denied'], ask: (gateway) => call(gateway, 'files_destroy_thing') },
  { ends: ['call-denied'], ask: (gateway) => call(gateway, 'files_both_thing') },
  { ends: ['tool-not-found'], ask: (gateway) => call(gateway, 'files_no_such_tool') },
]

it('ends each of many different calls in exactly one state, with exactly one outcome entry', async () => {
  const { server, lines } = recordingServer()
  const silent = { ...stdioFixture('hostile', ['never-answer']), timeout: { call: 300 } }
  await using gateway = await startTestGateway({
    servers: {
      files: server,
      silent,
      errors: stdioFixture('hostile', ['error-result']),
      crashing: stdioFixture('hostile', ['crash-mid-call']),
      dying: stdioFixture('hostile', ['crash-mid-call']),
    },
    rules: [
      { risk: ['read', 'write'], action: 'allow' },
      { tools: ['files_destroy_thing', 'files_both_thing'], action: 'deny' },
    ],
  })
  const asked = numbersUpTo(300).map(async (n) => {
    const way = ways[n % ways.length]
    if (!way) throw new Error('No such way')
    await new Promise((resolve) => setTimeout(resolve, n))
    const end = await howItWent(way.ask(gateway, n))
    return way.ends.includes(end) ? 'as expected' : `${end} instead of ${way.ends.join(' or ')}`
  })
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['as expected']))
  const reader = readerOf(join(gateway.folder, 'data'))
  await gateway.gateway.calls.list({ limit: 1 })

  const rows = reader.all(`select state, ended_at,
    (select count(*) from audit where call = calls.id and kind = 'intent') as intents,
    (select group_concat(json_extract(body, '$.state')) from audit where call = calls.id and kind = 'outcome') as outcomes
    from calls`)
  expect(rows).toHaveLength(300)
  for (const { state, ended_at, intents, outcomes } of rows) {
    expect(outcomes).toBe(state)
    expect(ended_at).not.toBeNull()
    expect(intents).toBe(state === 'denied' ? 0 : 1)
  }
  expect(new Set(rows.map(({ state }) => state))).toEqual(
    new Set(['ok', 'tool-error', 'failed', 'timeout', 'cancelled', 'unknown', 'denied']),
  )
  const written = (await lines()).filter(({ name }) => name === 'write_thing').map((line) => line.arguments?.n)
  expect(new Set(written).size).toBe(25)
  expect(written).toHaveLength(25)
  expect(gateway.gateway.status().calls.running).toBe(0)
})

it('records a read that simply ran soon after, without anybody asking', async () => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: server } })
  const reader = readerOf(join(gateway.folder, 'data'))
  await call(gateway, 'files_read_thing', { given: { n: 1 } })
  const row = await poll(() => reader.all("select * from calls where tool = 'files_read_thing'")[0])
  expect(row).toMatchObject({ state: 'ok', risk: 'read', principal: 'agent:tester', arguments: '{"n":1}' })
  const entries = reader.all('select kind from audit where call = ? order by sequence', row.id)
  expect(entries.map(({ kind }) => kind)).toEqual(['intent', 'outcome'])
})

it('tells who called what, with which arguments, by which decision, and how it ended', async () => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({
    servers: { files: server },
    rules: [{ tools: 'files_write_*', action: 'allow', name: 'Writing' }],
  })
  const { call: ended } = await call(gateway, 'files_write_thing', { as: 'kim', given: { path: '/a' } })
  expect(await gateway.gateway.calls.find(ended.id)).toEqual({ ...ended, arguments: { path: '/a' } })
  expect(ended).toMatchObject({
    method: 'tools/call',
    tool: 'files_write_thing',
    server: 'files',
    principal: 'agent:kim',
    surface: 'library',
    risk: 'write',
    state: 'ok',
    decision: 'rule 1 of global "Writing" allows',
    instance: gateway.gateway.instance,
  })
  const { items } = await gateway.gateway.audit.list({ limit: 10, call: ended.id })
  expect(items).toMatchObject([
    { kind: 'outcome', principal: 'agent:kim', subject: 'files_write_thing', body: { state: 'ok' } },
    {
      kind: 'intent',
      principal: 'agent:kim',
      body: { original: 'write_thing', arguments: { path: '/a' }, risk: 'write' },
    },
  ])
})

it('tells of a writing call that its server died with that nobody knows, and never makes it again', async () => {
  const record = join(temporaryFolder(), 'record.jsonl')
  const crashing = stdioFixture('hostile', ['crash-mid-call', '--record', record])
  await using gateway = await startTestGateway({ servers: { crashing }, rules: [{ action: 'allow' }] })
  const write = await call(gateway, 'crashing_trigger_write')
  expect(write).toMatchObject({ kind: 'refused', error: { code: 'call-unknown' }, call: { state: 'unknown' } })
  await gateway.reach('crashing', 'connected')
  const read = await call(gateway, 'crashing_trigger')
  expect(read).toMatchObject({ kind: 'refused', error: { code: 'server-broken' }, call: { state: 'failed' } })
  await gateway.reach('crashing', 'connected')
  expect((await readRecord(record)).map(({ name }) => name)).toEqual(['trigger_write', 'trigger'])
})

it('says ok of a call that its server made, although the answer was too large to hand on', async () => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: server }, limits: { result: 1024 } })
  const outcome = await call(gateway, 'files_big', { given: { bytes: 100_000 } })
  expect(outcome).toMatchObject({ kind: 'answered', call: { state: 'ok' } })
  if (outcome.kind === 'answered') expect(outcome.answer.bytes.length).toBeLessThan(2000)
})

it('notes that a server answered a call which had been taken back', async () => {
  const late = stdioFixture('hostile', ['answer-after-cancel'])
  await using gateway = await startTestGateway({ servers: { late }, rules: [{ action: 'allow' }] })
  const controller = new AbortController()
  const asked = call(gateway, 'late_trigger_write', { signal: controller.signal })
  await poll(async () => (await gateway.gateway.calls.list({ limit: 1, state: 'running' })).items[0])
  controller.abort()
  const { call: ended } = await asked
  expect(ended).toMatchObject({ state: 'cancelled' })
  expect(await poll(async () => (await gateway.gateway.calls.find(ended.id))?.late)).toBe(true)
  const { items } = await gateway.gateway.audit.list({ limit: 10, call: ended.id })
  expect(items.map(({ kind }) => kind)).toEqual(['outcome', 'intent'])
})

it('hands on and records arguments as they are, also those called like parts of every object', async () => {
  const { server } = recordingServer()
  await using gateway = await startTestGateway({ servers: { files: server }, rules: [{ action: 'allow' }] })
  const text = '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"a":"\\u0000\\n漢字"}'
  const outcome = await call(gateway, 'files_write_thing', { given: JSON.parse(text) })
  expect(JSON.stringify(JSON.parse(textOf(outcome)))).toBe(JSON.stringify(JSON.parse(text)))
  const found = await gateway.gateway.calls.find(outcome.call.id)
  expect(JSON.stringify(found?.arguments)).toBe(JSON.stringify(JSON.parse(text)))
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
})
