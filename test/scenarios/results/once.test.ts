import { request as openRequest } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { connected, recordingPlace } from '../life/process.ts'
import { allowAll, type RecordingGateway, startRecordingGateway, temporaryFolder } from '../mcp/raw.ts'

let started: RecordingGateway
let keys = 0

beforeAll(async () => {
  started = await startRecordingGateway({
    rules: [...allowAll, { tools: 'rec_destroy_thing', action: 'deny' }],
    limits: { result: 2000 },
  })
})

afterAll(() => started?.close())

/** A key and a number that nobody has used before. */
function fresh(): { key: string; n: number } {
  keys += 1
  return { key: `key ${keys}`, n: keys }
}

type Sent = { as?: string; tool?: string; given?: Fields; gateway?: TestGateway }
type Answered = { status: number; replayed: string | null; retryAfter: string | null; body: Fields; text: string }

async function call(
  key: string | undefined,
  { as = 'agent', tool = 'rec_write_thing', given = {}, gateway }: Sent = {},
): Promise<Answered> {
  const response = await (gateway ?? started.gateway).fetch(as, `/api/tools/${tool}/call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) },
    body: JSON.stringify({ arguments: given }),
  })
  const text = await response.text()
  const { headers, status } = response
  return {
    status,
    replayed: headers.get('idempotency-replayed'),
    retryAfter: headers.get('retry-after'),
    body: toFields(JSON.parse(text)),
    text,
  }
}

/** How often the server itself was called with a number. */
async function runs(n: number, record = started.record): Promise<number> {
  return (await readRecord(record)).filter((line) => line.arguments?.n === n).length
}

describe('calls with one key', () => {
  it('run once when they come at once, and all get the same answer', async () => {
    const { key, n } = fresh()
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(key, { given: { n } })))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter(({ replayed }) => replayed === 'true')).toHaveLength(19)
    expect(await runs(n)).toBe(1)
  })

  it('run once when they come later, however the arguments are ordered, also if they read only', async () => {
    for (const tool of ['rec_write_thing', 'rec_read_thing']) {
      const { key, n } = fresh()
      const first = await call(key, { tool, given: { n, more: { a: 1, b: 2 } } })
      const second = await call(key, { tool, given: { more: { b: 2, a: 1 }, n } })
      expect(first).toMatchObject({ status: 200, replayed: null })
      expect(second).toMatchObject({ status: 200, replayed: 'true', text: first.text })
      expect(await runs(n)).toBe(1)
    }
  })

  it('wait for a first one that takes its time', async () => {
    const { key } = fresh()
    const given = { text: `slow ${key}`, delayMs: 1500 }
    const [first, second] = await Promise.all([
      call(key, { tool: 'rec_echo', given }),
      call(key, { tool: 'rec_echo', given }),
    ])
    expect(second.text).toBe(first.text)
    expect((await readRecord(started.record)).filter((line) => line.arguments?.text === given.text)).toHaveLength(1)
  })

  it('and other arguments or another tool are a mistake, and nothing runs', async () => {
    const { key, n } = fresh()
    const other = fresh()
    await call(key, { given: { n } })
    for (const sent of [{ given: { n: other.n } }, { tool: 'rec_plain_thing', given: { n } }]) {
      expect(await call(key, sent)).toMatchObject({ status: 422, body: { error: { code: 'idempotency-conflict' } } })
    }
    expect([await runs(n), await runs(other.n)]).toEqual([1, 0])
  })

  it('of two principals have nothing to do with each other', async () => {
    const { key, n } = fresh()
    expect(await call(key, { given: { n } })).toMatchObject({ status: 200, replayed: null })
    expect(await call(key, { as: 'other', given: { n } })).toMatchObject({ status: 200, replayed: null })
    expect(await runs(n)).toBe(2)
  })

  it("give the tool's own failure again, and the server's error", async () => {
    const { key } = fresh()
    const failed = await call(key, { tool: 'rec_fail' })
    expect(failed).toMatchObject({ status: 200, body: { result: { isError: true } } })
    expect(await call(key, { tool: 'rec_fail' })).toMatchObject({ replayed: 'true', text: failed.text })
  })

  it('get a result that was cut with the same handle', async () => {
    const { key } = fresh()
    const sent = { tool: 'rec_echo', given: { text: 'x'.repeat(9000) } }
    const first = await call(key, sent)
    expect(first.text).toContain('/api/results/')
    expect(await call(key, sent)).toMatchObject({ replayed: 'true', text: first.text })
  })

  it('find the answer of one whose caller hung up', async () => {
    const { key } = fresh()
    const given = { text: `left ${key}`, delayMs: 1000 }
    const { hostname, port } = new URL(started.gateway.url)
    const left = openRequest({
      hostname,
      port,
      method: 'POST',
      path: '/api/tools/rec_echo/call',
      headers: {
        authorization: `Bearer ${await started.gateway.token('agent')}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
    })
    left.on('error', () => {})
    left.end(JSON.stringify({ arguments: given }))
    const ran = async () =>
      (await readRecord(started.record)).filter((line) => line.arguments?.text === given.text).length
    await poll(async () => ((await ran()) > 0 ? true : undefined))
    left.destroy()
    expect(await call(key, { tool: 'rec_echo', given })).toMatchObject({
      status: 200,
      replayed: 'true',
      body: { call: { state: 'ok' }, result: { content: [{ text: given.text }] } },
    })
    expect(await ran()).toBe(1)
  })

  it('are not run again when nobody knows whether the first one took effect', async () => {
    await using folder = await temporaryFolder()
    const record = join(folder.path, 'record')
    await using gateway = await startTestGateway({
      servers: { rec: stdioFixture('recording', ['--record', record]) },
      rules: allowAll,
    })
    const { key } = fresh()
    expect(await call(key, { tool: 'rec_exit', gateway })).toMatchObject({
      status: 502,
      body: { error: { code: 'call-unknown' } },
    })
    await gateway.reach('rec', 'connected')
    expect(await call(key, { tool: 'rec_exit', gateway })).toMatchObject({
      status: 409,
      body: { error: { code: 'call-unknown' } },
    })
    expect(await readRecord(record)).toHaveLength(1)
  })
})

describe('a key', () => {
  it.each([
    ['empty', ''],
    ['longer than 255 characters', 'x'.repeat(256)],
    ['with a tab in it', 'a\tb'],
    ['with letters beyond ASCII', 'schl\u00fcssel'],
  ])('that is %s is refused, and nothing runs', async (_what, key) => {
    const { n } = fresh()
    expect(await call(key, { given: { n } })).toMatchObject({
      status: 400,
      body: {
        error: { code: 'request-invalid', message: expect.stringMatching(/^idempotency-key: must be 1 to 255/) },
      },
    })
    expect(await runs(n)).toBe(0)
  })

  it('of 255 characters is one', async () => {
    expect(await call('~'.repeat(255), { given: {} })).toMatchObject({ status: 200 })
  })

  it('is not used up by a call that was refused', async () => {
    await using folder = await temporaryFolder()
    const record = join(folder.path, 'record')
    const servers = { rec: stdioFixture('recording', ['--record', record]) }
    await using gateway = await startTestGateway({ servers })
    const { key, n } = fresh()
    const sent = { gateway, given: { n } }
    expect(await call(key, sent)).toMatchObject({ status: 202, body: { approval: { state: 'waiting' } } })
    await gateway.writeConfig({ servers, rules: [{ tools: '*', action: 'deny' }] })
    await poll(async () => ((await call(key, sent)).text.includes('call-denied') ? true : undefined))
    await gateway.writeConfig({ servers, rules: allowAll })
    const allowed = await poll(async () => {
      const answer = await call(key, sent)
      return answer.status === 200 ? answer : undefined
    })
    expect(allowed.replayed).toBe(null)
    expect(await runs(n, record)).toBe(1)
  })

  it('does not get around a rule that denies by now', async () => {
    await using folder = await temporaryFolder()
    const servers = { rec: stdioFixture('recording', ['--record', join(folder.path, 'record')]) }
    await using gateway = await startTestGateway({ servers, rules: allowAll })
    const { key, n } = fresh()
    expect(await call(key, { gateway, given: { n } })).toMatchObject({ status: 200 })
    await gateway.writeConfig({ servers, rules: [{ tools: '*', action: 'deny' }] })
    await poll(async () => ((await call(key, { gateway, given: { n } })).status === 403 ? true : undefined))
    await gateway.writeConfig({ servers, rules: [] })
    // An approval was answered when it ran: the answer is there, and nobody is asked again.
    await poll(async () => ((await call(key, { gateway, given: { n } })).replayed === 'true' ? true : undefined))
  })
})

describe('after the gateway', () => {
  it('was stopped and started again, the answer is still there', async () => {
    await using folder = await temporaryFolder()
    const record = join(folder.path, 'record')
    const config = { servers: { rec: stdioFixture('recording', ['--record', record]) }, rules: allowAll }
    const { key, n } = fresh()
    const before = await startTestGateway(config, { folder: folder.path })
    const token = await before.token('agent')
    const first = await call(key, { gateway: before, given: { n } })
    await before.close()
    await using after = await startTestGateway(config, { folder: folder.path })
    const second = await fetch(`${after.url}/api/tools/rec_write_thing/call`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ arguments: { n } }),
    })
    expect([await second.text(), second.headers.get('idempotency-replayed')]).toEqual([first.text, 'true'])
    expect(await runs(n, record)).toBe(1)
  })

  it('was killed during the call, its end is unknown, and a repeat says so and does not run', async () => {
    const { files, place } = await recordingPlace()
    const killed = await place.start()
    await connected(killed)
    const { body } = await killed.rest('/api/tokens', { method: 'POST', body: { agent: 'bot' } })
    const sendTo = (url: string) =>
      fetch(`${url}/api/tools/files_echo/call`, {
        method: 'POST',
        headers: { authorization: `Bearer ${body.token}`, 'content-type': 'application/json', 'idempotency-key': 'k' },
        body: JSON.stringify({ arguments: { text: 'slow', delayMs: 20_000 } }),
      })
    const lost = sendTo(killed.url).then(
      () => 'answered',
      () => 'lost',
    )
    await poll(async () => ((await files.received()).length > 0 ? true : undefined))
    await killed.end('SIGKILL')
    expect(await lost).toBe('lost')
    const next = await place.start()
    await connected(next)
    const repeated = await sendTo(next.url)
    expect(repeated.status).toBe(409)
    expect(await repeated.json()).toMatchObject({ error: { code: 'call-unknown' } })
    expect(await files.received()).toEqual(['echo'])
  })
})
