import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway } from '../../support/gateway.ts'
import {
  ask,
  namesIn,
  openSession,
  ownTools,
  type RecordingGateway,
  startRecordingGateway,
  textOf,
} from '../mcp/raw.ts'

const limit = 2000
const own = 'sallyport_read_result'
const whole = Array.from({ length: 1500 }, (_, n) => `${n} 😀`).join('\n')

let started: RecordingGateway

beforeAll(async () => {
  started = await startRecordingGateway({
    limits: { result: limit },
    toolsets: { few: { tools: ['rec_echo'] } },
    rules: [{ tools: 'rec_both_thing', action: 'deny' }],
  })
})

afterAll(() => started?.close())

type Call = (name: string, given?: Fields) => Promise<Fields>

/** The ways by which an agent calls a tool over MCP. */
const ways: readonly [string, (agent?: string, path?: string) => Promise<Call>][] = [
  [
    'the era with sessions',
    async (agent, path) => {
      const session = await openSession(started.gateway, { ...(agent && { agent }), ...(path && { path }) })
      return async (name, given) => (await session.call(name, given)).result
    },
  ],
  [
    'the stateless era',
    async (agent, path) =>
      async (name, given = {}) => {
        const asking = { ...(agent && { agent }), ...(path && { path }) }
        return (await ask(started.gateway, 'tools/call', { name, arguments: given }, asking)).result
      },
  ],
]

function cutOf(result: Fields): { handle: string; offset: number; total: number } {
  const cut = toFields(toFields(result._meta)['sallyport/cut'])
  return { handle: String(cut.handle), offset: Number(cut.offset), total: Number(cut.total) }
}

function pageOf(result: Fields): { offset: number; total: number; next: number | null } {
  const page = toFields(toFields(result._meta)['sallyport/page'])
  return {
    offset: Number(page.offset),
    total: Number(page.total),
    next: page.next === null ? null : Number(page.next),
  }
}

describe.each(ways)('in %s', (_era, open) => {
  it('a long text is cut visibly, and an agent that does what the cut says reads all of it', async () => {
    const call = await open()
    const first = await call('rec_echo', { text: whole })
    const shown = textOf(first) ?? ''
    const said =
      /\n\[cut by Sallyport: (\d+) of (\d+) characters\]\n\[Read the rest with sallyport_read_result (\{.*\})\]$/.exec(
        shown,
      )
    expect([said?.[1], said?.[2]]).toEqual(['2000', String(whole.length)])
    let text = shown.slice(0, said?.index)
    let given = JSON.parse(said?.[3] ?? '{}')
    expect(given).toEqual({ handle: cutOf(first).handle, offset: 2000 })
    while (text.length < whole.length) {
      const page = await call(own, given)
      expect(page).not.toHaveProperty('isError')
      text += textOf(page)
      given = { ...given, offset: pageOf(page).next }
    }
    expect(text).toBe(whole)
    expect(given.offset).toBe(null)
  })

  it('a page is as long as it was asked for, says where it stands, and is never longer than a result may be', async () => {
    const call = await open()
    const { handle } = cutOf(await call('rec_echo', { text: whole }))
    const short = await call(own, { handle, offset: 10, length: 7 })
    expect(textOf(short)).toBe(whole.slice(10, 17))
    expect(short.content).toMatchObject([
      {},
      { text: `[Sallyport: characters 10 to 17 of ${whole.length}; continue with offset 17]` },
    ])
    const greedy = await call(own, { handle, length: 1_000_000 })
    expect(textOf(greedy)?.length).toBe(limit)
    const last = await call(own, { handle, offset: whole.length - 4 })
    expect(last.content).toMatchObject([
      { text: whole.slice(-4) },
      { text: expect.stringContaining('this is the end') },
    ])
    expect(textOf(await call(own, { handle, offset: 99_999_999 }))).toBe('')
  })

  it("a handle is its caller's own, and what makes no sense is a failure that a model can read", async () => {
    const { handle } = cutOf(await (await open())('rec_echo', { text: whole }))
    const other = await open('other')
    const call = await open()
    const missing = { isError: true, content: [{ text: expect.stringMatching(/^result-not-found: /) }] }
    expect(await other(own, { handle })).toMatchObject(missing)
    expect(await call(own, { handle: 'guessed' })).toMatchObject(missing)
    for (const given of [
      {},
      { handle: 7 },
      { handle: '' },
      { handle, offset: -1 },
      { handle, length: 0 },
      { handle, offset: 'x' },
    ]) {
      expect(await call(own, given)).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^arguments-invalid: (handle|offset|length)/) }],
      })
    }
    expect(textOf(await call(own, { handle }))).toBe(whole.slice(0, limit))
  })

  it("at a server's own address the cut names the address where reading on works, and there it does", async () => {
    const call = await open('agent', '/mcp/s/rec')
    const cut = await call('echo', { text: whole })
    expect(textOf(cut)).toContain('Read the rest at the address /mcp of this gateway with sallyport_read_result {')
    expect(textOf(await (await open())(own, { handle: cutOf(cut).handle, offset: 2000 }))).toBe(whole.slice(2000, 4000))
  })

  it('structured content passes whole beside a text that is cut, and over the hard limit is a failure with a handle', async () => {
    const call = await open()
    const fitting = await call('rec_rows', { count: 2000 })
    expect(fitting).not.toHaveProperty('isError')
    expect(toFields(fitting.structuredContent).rows).toHaveLength(2000)
    expect(textOf(fitting)).toContain('[cut by Sallyport')
    const failed = await call('rec_rows', { count: 5000 })
    expect(failed).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^result-too-large: /) }] })
    expect(failed).not.toHaveProperty('structuredContent')
    const { handle } = toFields(toFields(failed._meta)['sallyport/left-out'])
    const page = await call(own, { handle: String(handle) })
    expect(textOf(page)).toMatch(/^\{"content":\[/)
    expect(pageOf(page).total).toBeGreaterThan(16 * limit)
  })

  it('a picture passes whole, or is left out whole with a note and a handle', async () => {
    const call = await open()
    expect((await call('rec_picture', { bytes: 10_000 })).content).toMatchObject([{ type: 'image' }])
    const left = await call('rec_picture', { bytes: 50_000 })
    expect(left.content).toMatchObject([
      { type: 'text', text: expect.stringMatching(/^\[left out by Sallyport: 1 part \(image\)/) },
    ])
  })
})

it('is listed at /mcp and at toolsets, not at a server, and the same each time', async () => {
  const at = async (path: string) => namesIn((await ask(started.gateway, 'tools/list', {}, { path })).result)
  expect((await at('/mcp')).slice(-ownTools.length)).toEqual(ownTools)
  expect(await at('/mcp/t/few')).toEqual(['rec_echo', ...ownTools])
  expect(await at('/mcp/s/rec')).not.toContain(own)
  expect(await at('/mcp')).toEqual(await at('/mcp'))
  const refused = await ask(
    started.gateway,
    'tools/call',
    { name: own, arguments: { handle: 'x' } },
    { path: '/mcp/s/rec' },
  )
  expect(refused.error).toMatchObject({ code: -32602 })
})

it('belongs to the gateway: no server can put a tool of its own in its place', async () => {
  await using gateway = await startTestGateway({
    naming: 'sallyport_{server}_{tool}',
    servers: {
      read: {
        ...stdioFixture('recording'),
        tools: { include: ['echo', 'fail'], override: { echo: { name: 'result' } } },
      },
    },
  })
  const { result } = await ask(gateway, 'tools/list')
  const names = namesIn(result)
  expect(names.filter((name) => name.startsWith('sallyport_')).toSorted()).toEqual(ownTools.toSorted())
  expect(names.filter((name) => /^sallyport-read_(fail|result)_0\w{12}$/.test(name))).toHaveLength(2)
  expect(JSON.stringify(result)).toContain('Sallyport cut')
})

it('is decided by the rules and recorded like any other call, and no record has a handle', async () => {
  await using gateway = await startTestGateway({
    servers: { rec: stdioFixture('recording') },
    limits: { result: limit },
    agents: { shut: { rules: [{ tools: own, action: 'deny' }] } },
  })
  const call = async (agent: string, name: string, given: Fields, path = '/mcp') =>
    (await ask(gateway, 'tools/call', { name, arguments: given }, { agent, path })).result
  const cut = await call('open', 'rec_echo', { text: whole })
  const { handle } = cutOf(cut)
  await call('open', own, { handle, offset: 2000 })
  await call('open', own, { handle }, '/mcp/s/rec')
  expect(await call('shut', own, { handle })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/^call-denied/) }],
  })
  const { items: calls } = await gateway.gateway.calls.list({ limit: 10 })
  expect(calls.map(({ tool, server, risk, state, principal }) => [tool, server, risk, state, principal])).toEqual([
    [own, 'sallyport', 'read', 'denied', 'agent:shut'],
    [own, '', 'write', 'denied', 'agent:open'],
    [own, 'sallyport', 'read', 'ok', 'agent:open'],
    ['rec_echo', 'rec', 'read', 'ok', 'agent:open'],
  ])
  expect(calls[2]?.arguments).toEqual({ handle: '[handle]', offset: 2000 })
  const given = calls[3]?.cut?.given ?? 0
  expect(calls[3]?.cut?.bytes).toBeGreaterThan(whole.length)
  expect(given).toBeGreaterThan(limit)
  expect(given).toBeLessThan(2 * limit + 1000)
  expect(calls[2]?.cut).toBeUndefined()
  const { items: entries } = await gateway.gateway.audit.list({ limit: 100 })
  expect(entries.find(({ kind, subject }) => kind === 'outcome' && subject === 'rec_echo')?.body).toMatchObject({
    cut: calls[3]?.cut,
  })
  expect(JSON.stringify([calls, entries])).not.toContain(handle)
})

it('is dropped a while after its last use, as the configuration says', async () => {
  let skipped = 0
  const clock = {
    now: () => Date.now() + skipped,
    monotonic: () => performance.now(),
    after(milliseconds: number, task: () => void) {
      const timer = setTimeout(task, milliseconds)
      timer.unref()
      return () => clearTimeout(timer)
    },
  }
  await using gateway = await startTestGateway(
    { servers: { rec: stdioFixture('recording') }, limits: { result: limit, kept: 60_000 } },
    { clock },
  )
  const { result } = await ask(gateway, 'tools/call', { name: 'rec_echo', arguments: { text: whole } })
  const { handle } = cutOf(result)
  const read = async () => (await ask(gateway, 'tools/call', { name: own, arguments: { handle } })).result
  skipped = 59_000
  expect(textOf(await read())).toBe(whole.slice(0, limit))
  skipped = 130_000
  expect(await read()).toMatchObject({ isError: true })
})

describe('over REST', () => {
  const get = async (agent: string, path: string) => {
    const response = await started.gateway.fetch(agent, path)
    return { status: response.status, body: toFields(await response.json()) }
  }
  const callEcho = async () => {
    const body = JSON.stringify({ arguments: { text: whole } })
    const headers = { 'content-type': 'application/json' }
    const response = await started.gateway.fetch('agent', '/api/tools/rec_echo/call', { method: 'POST', body, headers })
    return toFields(toFields(await response.json()).result)
  }

  it('the cut names the address of the rest, and its pages are the whole', async () => {
    const result = await callEcho()
    const said = /\n\[Read the rest with GET (\/api\/results\/\S+)\?offset=2000\]$/.exec(textOf(result) ?? '')
    let text = ''
    let next: unknown = 0
    while (next !== null) {
      const { status, body } = await get('agent', `${said?.[1]}?offset=${next}&length=1999`)
      expect(status).toBe(200)
      expect(body).toMatchObject({ form: 'text', offset: text.length, total: whole.length })
      text += body.text
      next = body.next
    }
    expect(text).toBe(whole)
  })

  it("is nobody else's, and a bad request is told so", async () => {
    const { handle } = cutOf(await callEcho())
    expect(await get('agent', `/api/results/${handle}`)).toMatchObject({ status: 200, body: { next: 2000 } })
    for (const [agent, path] of [
      ['other', handle],
      ['agent', 'guessed'],
    ] as const) {
      expect(await get(agent, `/api/results/${path}`)).toMatchObject({
        status: 404,
        body: { error: { code: 'result-not-found' } },
      })
    }
    for (const query of ['offset=-1', 'length=0', 'offset=x', 'more=1']) {
      expect(await get('agent', `/api/results/${handle}?${query}`), query).toMatchObject({
        status: 400,
        body: { error: { code: 'request-invalid' } },
      })
    }
    expect((await readRecord(started.record)).every(({ name }) => name !== own)).toBe(true)
  })
})
