import { describe, expect, it } from 'vitest'
import { runCli } from '../../cli/support.ts'
import { poll } from '../../support/gateway.ts'
import { metaKey, modernVersion } from '../mcp/raw.ts'
import { answer, createSessions, openEvents, type Script, startScripted } from './scripted-gateway.ts'
import { createPlace, type Program } from './support.ts'

const meta = { [metaKey('protocolVersion')]: modernVersion, [metaKey('clientCapabilities')]: {} }

async function setUp(script: Script) {
  const gateway = await startScripted(script)
  const place = await createPlace()
  const program = place.program('--url', gateway.url, '--token', 'some-token')
  return {
    gateway,
    program,
    async [Symbol.asyncDispose]() {
      await place[Symbol.asyncDispose]()
      await gateway[Symbol.asyncDispose]()
    },
  }
}

/** A gateway with sessions, which answers everything else with the name of its method. */
async function setUpSession(more: Script = ({ message }, response) => echo(message.id, message.method, response)) {
  const sessions = createSessions()
  const set = await setUp((received, response) => {
    if (!sessions.handle(received, response)) more(received, response)
  })
  return { ...set, sessions }
}

function echo(id: unknown, method: unknown, response: Parameters<Script>[1]): void {
  answer(response, { id, result: { method } })
}

describe('the pipe', () => {
  it('carries messages and nothing else, one on each line, even if the answer has several', async () => {
    await using set = await setUpSession()
    const { program } = set
    await program.greet()
    await program.ask(1, 'ping')
    const answered = await program.ask('one', 'tools/list')
    expect(answered.result).toEqual({ method: 'tools/list' })
    expect(program.lines().every((line) => JSON.parse(line).jsonrpc === '2.0')).toBe(true)
  })

  it.each([
    ['nonsense', -32700],
    ['[]', -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['"text"', -32600],
  ])('answers %s with an error and goes on', async (line, code) => {
    await using set = await setUpSession()
    const { program } = set
    program.say(line)
    expect((await program.answerTo(null)).error).toMatchObject({ code })
    await program.greet()
    expect((await program.ask(1, 'ping')).result).toEqual({ method: 'ping' })
  })

  it('passes over empty lines, and refuses one that is too long by its id', async () => {
    await using set = await setUpSession()
    const { program } = set
    program.say('')
    program.say('\r')
    await program.greet()
    program.say(
      `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"text":"${'x'.repeat(65 * 1024 * 1024)}"}}`,
    )
    expect((await program.answerTo('long')).error).toMatchObject({ data: { code: 'request-too-large' } })
    expect((await program.ask(1, 'ping')).result).toEqual({ method: 'ping' })
  })

  it('keeps large answers whole, in whatever order they come', async () => {
    const large = 'ä'.repeat(500_000)
    const waiting: (() => void)[] = []
    await using set = await setUpSession(({ message }, response) => {
      waiting.push(() => answer(response, { id: message.id, result: { large, id: message.id } }))
      if (waiting.length === 5) for (const done of waiting.reverse()) done()
    })
    const { program } = set
    await program.greet()
    const answers = await Promise.all([1, 2, 3, 4, 5].map((id) => program.ask(id, 'tools/list')))
    expect(answers.map(({ result }) => result)).toEqual([1, 2, 3, 4, 5].map((id) => ({ large, id })))
  })

  it('tells the progress of a call in order, and before its answer', async () => {
    await using set = await setUpSession(({ message }, response) => {
      const tell = openEvents(response)
      for (const progress of [1, 2, 3]) tell({ method: 'notifications/progress', params: { progress } })
      tell({ id: message.id, result: {} })
      response.end()
    })
    const { program } = set
    await program.greet()
    await program.ask(1, 'tools/call', { name: 'x' })
    expect(program.messages().slice(1)).toEqual([
      ...[1, 2, 3].map((progress) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progress } })),
      { jsonrpc: '2.0', id: 1, result: {} },
    ])
  })

  it('refuses an id that is still under way', async () => {
    await using set = await setUpSession(() => {})
    const { program, gateway } = set
    await program.greet()
    program.say({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    await poll(() => gateway.of('tools/list')[0])
    expect((await program.ask(1, 'tools/list')).error).toMatchObject({ data: { code: 'request-invalid' } })
  })

  it('says what an answer without a message means', async () => {
    await using set = await setUp(({ message }, response) => {
      if (message.method === 'ping') return void response.writeHead(502).end('<html>')
      const error = { code: 'host-not-allowed', message: 'Not this host', hint: '' }
      response.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
    })
    const { program } = set
    expect((await program.ask(1, 'ping')).error).toMatchObject({ message: expect.stringContaining('502') })
    const { error } = await program.ask(2, 'tools/list')
    expect(error).toMatchObject({ message: 'Not this host', data: { code: 'host-not-allowed' } })
  })

  it('tells that a call may have taken effect when the gateway breaks off in the middle of it', async () => {
    await using set = await setUpSession((_received, response) => {
      openEvents(response)({ method: 'notifications/progress', params: {} })
      setTimeout(() => response.destroy(), 50)
    })
    const { program, gateway } = set
    await program.greet()
    const { error } = await program.ask(1, 'tools/call', { name: 'x' })
    expect(error).toMatchObject({ data: { code: 'call-unknown' } })
    expect(gateway.of('tools/call')).toHaveLength(1)
  })
})

describe('the older era', () => {
  it('keeps the session, opens its stream, and carries questions and answers both ways', async () => {
    await using set = await setUpSession()
    const { program, gateway, sessions } = set
    await program.greet()
    await poll(() => sessions.hasStream() || undefined)
    sessions.tell({ id: 'question', method: 'elicitation/create', params: { message: 'Sure?' } })
    await poll(() => program.messages().find(({ method }) => method === 'elicitation/create'))
    program.say({ jsonrpc: '2.0', id: 'question', result: { action: 'accept' } })
    const replied = await poll(() => gateway.received.find(({ message }) => 'result' in message))
    expect(replied.message).toMatchObject({ id: 'question', result: { action: 'accept' } })
    expect(replied.headers).toMatchObject({
      authorization: 'Bearer some-token',
      'mcp-session-id': 'session-1',
      'mcp-protocol-version': '2025-06-18',
    })
    expect(gateway.received.every(({ path }) => path === '/mcp')).toBe(true)
  })

  it('lets what follows initialize at once wait for its answer', async () => {
    await using set = await setUpSession()
    const { program } = set
    program.say({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } })
    program.say({ jsonrpc: '2.0', method: 'notifications/initialized' })
    expect((await program.ask(1, 'tools/list')).result).toEqual({ method: 'tools/list' })
  })

  it('renews a lost session by itself, once for all that noticed, and sends their requests again', async () => {
    await using set = await setUpSession()
    const { program, gateway, sessions } = set
    await program.greet()
    await program.ask(1, 'ping')
    sessions.forget()
    const answers = await Promise.all([2, 3, 4].map((id) => program.ask(id, 'tools/list')))
    expect(answers.map(({ result }) => result)).toEqual(Array(3).fill({ method: 'tools/list' }))
    expect(gateway.of('initialize')).toHaveLength(2)
    await poll(() => (gateway.of('notifications/initialized').length === 2 ? true : undefined))
    await poll(() => program.messages().find(({ method }) => method === 'notifications/tools/list_changed'))
    expect(program.messages().filter(({ id }) => id === 'greeting')).toHaveLength(1)
  })

  it('tells a renewed session again what was to last: the level, and the addresses that are followed', async () => {
    await using set = await setUpSession()
    const { program, gateway, sessions } = set
    await program.greet()
    await program.ask(1, 'logging/setLevel', { level: 'error' })
    await program.ask(2, 'resources/subscribe', { uri: 'a:kept' })
    await program.ask(3, 'resources/subscribe', { uri: 'a:dropped' })
    await program.ask(4, 'resources/unsubscribe', { uri: 'a:dropped' })
    sessions.forget()
    await program.ask(5, 'ping')
    const updated = await poll(() =>
      program.messages().find(({ method }) => method === 'notifications/resources/updated'),
    )
    expect(updated.params).toEqual({ uri: 'a:kept' })
    const renewed = gateway.received.filter(({ headers }) => headers['mcp-session-id'] === 'session-2')
    const told = renewed.map(({ message }) => message.method)
    expect(told).toEqual(expect.arrayContaining(['logging/setLevel', 'resources/subscribe']))
    expect(told.filter((method) => method === 'resources/subscribe')).toHaveLength(1)
    expect(program.messages().filter(({ id }) => id === 2)).toHaveLength(1)
  })

  it('gives up a session that is lost at once again', async () => {
    const sessions = createSessions()
    await using set = await setUp((received, response) => {
      sessions.handle(received, response)
      if (received.message.method === 'initialize') sessions.forget()
    })
    const { program, gateway } = set
    await program.greet()
    expect((await program.ask(1, 'tools/list')).error).toMatchObject({ message: expect.stringContaining('404') })
    expect(gateway.of('tools/list').length).toBeLessThanOrEqual(2)
  })

  it('passes a cancellation on as it is', async () => {
    await using set = await setUpSession(() => {})
    const { program, gateway } = set
    await program.greet()
    program.say({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'x' } })
    await poll(() => gateway.of('tools/call')[0])
    program.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })
    const told = await poll(() => gateway.of('notifications/cancelled')[0])
    expect(told.message.params).toEqual({ requestId: 7 })
  })
})

describe('the stateless era', () => {
  it('says in headers what the body says', async () => {
    await using set = await setUp(({ message }, response) => echo(message.id, message.method, response))
    const { program, gateway } = set
    await program.ask(1, 'server/discover', { _meta: meta })
    await program.ask(2, 'tools/call', { name: 'tool', _meta: meta })
    await program.ask(3, 'resources/read', { uri: 'file:///ä', _meta: meta })
    await program.ask(4, 'ping', { _meta: { ...meta, [metaKey('protocolVersion')]: '2099-01-01' } })
    const headers = gateway.received.map((one) => [
      one.headers['mcp-protocol-version'],
      one.headers['mcp-method'],
      one.headers['mcp-name'],
      one.headers['mcp-session-id'],
    ])
    expect(headers).toEqual([
      [modernVersion, 'server/discover', undefined, undefined],
      [modernVersion, 'tools/call', 'tool', undefined],
      [modernVersion, 'resources/read', `=?base64?${Buffer.from('file:///ä').toString('base64')}?=`, undefined],
      ['2099-01-01', 'ping', undefined, undefined],
    ])
  })

  it('takes a request back by hanging up, and says nothing of it', async () => {
    await using set = await setUp(({ message }, response) => {
      if (message.method === 'ping') return echo(message.id, message.method, response)
      openEvents(response)({ method: 'notifications/progress', params: {} })
    })
    const { program, gateway } = set
    program.say({ jsonrpc: '2.0', id: 'a', method: 'tools/call', params: { name: 'x', _meta: meta } })
    await poll(() => program.messages().find(({ method }) => method === 'notifications/progress'))
    program.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'a' } })
    await poll(() => gateway.of('tools/call')[0]?.hungUp || undefined)
    await program.ask(2, 'ping', { _meta: meta })
    expect(program.messages().filter(({ id }) => id === 'a')).toEqual([])
    expect(gateway.of('notifications/cancelled')).toEqual([])
  })

  it('keeps a subscription while the gateway comes and goes, and tells that lists may have changed', async () => {
    const open: (() => void)[] = []
    await using set = await setUp(({ message }, response) => {
      const tell = openEvents(response)
      const params = { notifications: { toolsListChanged: true }, _meta: { subscription: message.id } }
      tell({ method: 'notifications/subscriptions/acknowledged', params })
      open.push(() => {
        tell({ id: message.id, result: { resultType: 'complete' } })
        response.end()
      })
    })
    const { program, gateway } = set
    program.say({ jsonrpc: '2.0', id: 's', method: 'subscriptions/listen', params: { _meta: meta } })
    await poll(() => program.messages().find(({ method }) => method === 'notifications/subscriptions/acknowledged'))
    open[0]?.()
    const told = await poll(() =>
      program.messages().find(({ method }) => method === 'notifications/tools/list_changed'),
    )
    expect(told.params).toEqual({ _meta: { subscription: 's' } })
    expect(program.messages()).toHaveLength(2)
    program.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 's' } })
    await poll(() => gateway.of('subscriptions/listen')[1]?.hungUp || undefined)
  })
})

describe('the end', () => {
  const ways: [string, (program: Program) => Promise<number | null>][] = [
    ['its input ends', (program) => program.end()],
    ['SIGTERM', (program) => program.kill('SIGTERM')],
    ['SIGINT', (program) => program.kill('SIGINT')],
  ]

  it.each(ways)('on %s is 0, with the session closed', async (_name, stop) => {
    await using set = await setUpSession()
    const { program, gateway } = set
    await program.greet()
    expect(await stop(program)).toBe(0)
    expect(gateway.of('DELETE')[0]?.headers['mcp-session-id']).toBe('session-1')
  })

  it('comes after the answers to what was asked before the input ended', async () => {
    await using set = await setUpSession(({ message }, response) => {
      setTimeout(() => echo(message.id, message.method, response), 500)
    })
    const { program } = set
    await program.greet()
    program.say({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    expect(await program.end()).toBe(0)
    expect(program.messages().find(({ id }) => id === 1)?.result).toEqual({ method: 'tools/list' })
  })

  it.each(ways.slice(1))('on %s does not wait for a call that has no end', async (_name, stop) => {
    await using set = await setUpSession(() => {})
    const { program, gateway } = set
    await program.greet()
    program.say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } })
    await poll(() => gateway.of('tools/call')[0])
    expect(await stop(program)).toBe(0)
  })

  it('comes also when nobody reads any more', async () => {
    await using set = await setUpSession()
    const { program } = set
    await program.greet()
    program.child.stdout?.destroy()
    program.say({ jsonrpc: '2.0', id: 1, method: 'ping' })
    program.say({ jsonrpc: '2.0', id: 2, method: 'ping' })
    await poll(() => (program.child.exitCode === 0 ? true : undefined))
  })
})

describe('wrong use', () => {
  it.each([
    [['--toolset', 'a', '--server', 'b'], 2, /--toolset: cannot be used together with --server/],
    [['--toolset', '../x'], 2, /--toolset: /],
    [['--agent', 'no/slash'], 2, /--agent: /],
    [['--linger', 'long'], 2, /--linger: must be a whole number from 0 to 86400, in seconds/],
    [['--url', 'nowhere', '--token', 'x'], 2, /not an address/],
    [['--url', 'http://127.0.0.1:9'], 3, /No token for/],
  ])('%j', async (args, code, said) => {
    const ended = await runCli(['stdio', ...args])
    expect(ended.stderr).toMatch(said)
    expect(ended).toMatchObject({ code, stdout: '' })
  })
})
