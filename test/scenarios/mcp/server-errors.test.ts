import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { allowAll, ask, openSession, recordedCalls } from './raw.ts'
import { startScriptedServer } from './scripted-server.ts'

/** A server that answers every call with the error that the call names. */
const refusing = () =>
  startScriptedServer(({ id, arguments: { error }, response }) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  })

const config = (url: string): ConfigInput => ({
  servers: { rec: { transport: 'http', url, headers: { 'X-Key': '${TOLD_KEY}' } } },
  toolsets: { some: { servers: ['rec'] } },
  environment: ['TOLD_KEY'],
  rules: allowAll,
})

const secret = 'hunter2-hunter2-hunter2'
const wrong = { code: -32602, message: 'path must be absolute', data: { path: ['path'] } }
let server: Awaited<ReturnType<typeof refusing>>
let gateway: TestGateway
beforeAll(async () => {
  server = await refusing()
  gateway = await startTestGateway(config(server.url), { environment: { ...process.env, TOLD_KEY: secret } })
})
afterAll(async () => {
  await gateway.close()
  await server[Symbol.asyncDispose]()
})

type Asking = { path?: string; tool?: string; error?: object; more?: object }

/** Both eras: an MCP session, and one stateless request. */
const eras = [
  {
    era: 'a session',
    async call({ path = '/mcp', tool = 'rec_talk', error = wrong, more = {} }: Asking) {
      const session = await openSession(gateway, { path })
      return session.request('tools/call', { name: tool, arguments: { error }, ...more })
    },
  },
  {
    era: 'a stateless request',
    async call({ path = '/mcp', tool = 'rec_talk', error = wrong, more = {} }: Asking) {
      return ask(gateway, 'tools/call', { name: tool, arguments: { error }, ...more }, { path })
    },
  },
]

describe.each(eras)('an error that a server answers to a call in $era', ({ call }) => {
  it.each(['/mcp', '/mcp/t/some'])('is a failed result at %s, with message, code and data', async (path) => {
    const { result, error } = await call({ path })
    expect(error).toEqual({})
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: expect.stringContaining('path must be absolute\n') }],
      _meta: { 'sallyport/error': { code: 'server-refused', server: 'rec', rpc: -32602, call: expect.any(String) } },
    })
    expect(JSON.stringify(result.content)).toContain('-32602')
    expect(JSON.stringify(result.content)).toContain('{\\"path\\":[\\"path\\"]}')
  })

  it('is unchanged at the address of the server', async () => {
    expect((await call({ path: '/mcp/s/rec', tool: 'talk' })).error).toEqual(wrong)
  })

  it.each([-32020, -32021, -32022, -32042])('stays an error if clients must act on its code: %s', async (code) => {
    const { error } = await call({ error: { ...wrong, code } })
    // In a session a missing capability is a failed result of the gateway itself, as before.
    if (code !== -32021) expect(error).toMatchObject({ code })
  })

  it('contains no secret', async () => {
    const told = { code: -32000, message: `key ${secret}`, data: { key: Buffer.from(secret).toString('hex') } }
    const { text, result } = await call({ error: told })
    expect(result).toMatchObject({ isError: true })
    expect(text).not.toContain(secret)
    expect(text).not.toContain(Buffer.from(secret).toString('hex'))
  })

  it('is recorded as a failed call, as before', async () => {
    const { result } = await call({ error: { code: -32050, message: 'recorded' } })
    const id = JSON.parse(JSON.stringify(result._meta))['sallyport/error'].call
    const record = await poll(async () => (await recordedCalls(gateway)).find((each) => each.id === id))
    expect(record).toMatchObject({ state: 'failed', error: { code: 'server-refused' } })
  })

  it('is not made of an error of the gateway: an unknown tool and bad arguments stay errors', async () => {
    expect((await call({ tool: 'rec_nothing' })).error).toMatchObject({ data: { code: 'tool-not-found' } })
    expect((await call({ more: { arguments: 'text' } })).error).toMatchObject({ data: { code: 'arguments-invalid' } })
  })
})

it('stays an error if the call asked for a task, whose result would be a task', async () => {
  const [session] = eras
  expect((await session?.call({ more: { task: {} } }))?.result).toEqual({})
})

it('is an error over REST, as before', async () => {
  const reply = await gateway.fetch('agent', '/api/tools/rec_talk/call', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ arguments: { error: wrong } }),
  })
  expect(reply.status).toBe(502)
  expect(await reply.json()).toMatchObject({ error: { code: 'server-refused' } })
})

it('stays an error everywhere with errorsAsResults: false, from the next call on', async () => {
  await gateway.writeConfig({ ...config(server.url), errorsAsResults: false })
  await poll(() => gateway.gateway.config.current().errorsAsResults === false || undefined)
  for (const { call } of eras) expect((await call({})).error).toEqual(wrong)
})
