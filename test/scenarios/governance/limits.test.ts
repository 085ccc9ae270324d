import { expect, it } from 'vitest'
import { recording, serve, until } from '../../cli/support.ts'
import { type ConfigInput, startTestGateway } from '../../support/gateway.ts'
import { createMovableClock } from '../mcp/clock.ts'
import { call, recordingServer } from './support.ts'

async function start(limits: NonNullable<ConfigInput['limits']>, more: Partial<ConfigInput> = {}) {
  const recorded = recordingServer()
  const clock = createMovableClock()
  const config = { servers: { files: recorded.server }, rules: [{ action: 'allow' as const }], ...more }
  return { ...recorded, clock, gateway: await startTestGateway({ ...config, limits }, { clock }) }
}

async function post(gateway: Awaited<ReturnType<typeof start>>['gateway'], agent: string, tool: string) {
  const response = await gateway.fetch(agent, `/api/tools/${tool}/call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: Object(await response.json()),
  }
}

it('answers 429 with Retry-After on REST, records the refusal, sends nothing, and takes calls again after that time', async () => {
  const { gateway, clock, received } = await start({ callsPerMinute: 2 })
  await using _ = gateway
  for (let n = 0; n < 2; n++) expect((await post(gateway, 'busy', 'files_write_thing')).status).toBe(200)
  const refused = await post(gateway, 'busy', 'files_write_thing')
  expect(refused.status).toBe(429)
  const seconds = Number(refused.retryAfter)
  expect(seconds).toBeGreaterThan(50)
  expect(seconds).toBeLessThanOrEqual(61)
  const { code, message, details } = refused.body.error
  expect(code).toBe('limit-exceeded')
  expect(message).toMatch(/^agent:busy had 2 calls within a minute, which is the limit; try again in \d+ s$/)
  expect(details).toMatchObject({ limit: 'callsPerMinute', most: 2, retryAfter: seconds })
  expect(await gateway.gateway.calls.find(details.call)).toMatchObject({
    state: 'denied',
    decision: 'rule 1 of global "*" allows',
    error: { code: 'limit-exceeded', message },
  })
  expect((await post(gateway, 'other', 'files_write_thing')).status).toBe(200)
  expect(await received()).toHaveLength(3)
  clock.advance(seconds * 1000)
  expect((await post(gateway, 'busy', 'files_write_thing')).status).toBe(200)
})

it('does not count lists, calls that are denied, or names that lead nowhere', async () => {
  const { gateway } = await start({ callsPerMinute: 1 }, { rules: [{ tools: '*_write_*', action: 'deny' }] })
  await using _ = gateway
  for (let n = 0; n < 5; n++) {
    expect((await gateway.fetch('a', '/api/tools')).status).toBe(200)
    expect((await post(gateway, 'a', 'files_write_thing')).status).toBe(403)
    expect((await post(gateway, 'a', 'files_nothing')).status).toBe(404)
  }
  expect((await post(gateway, 'a', 'files_read_thing')).status).toBe(200)
  expect((await post(gateway, 'a', 'files_read_thing')).status).toBe(429)
})

it('tells the model in both eras, in words and as data, when to try again', async () => {
  const { gateway } = await start({ callsPerMinute: 1 })
  await using _ = gateway
  const clients = [
    await gateway.connectV1('first'),
    await gateway.connectV2('second'),
    await gateway.connectV2('third', { mode: 'legacy' }),
  ]
  for (const client of clients) {
    expect((await client.listTools()).tools.length).toBeGreaterThan(0)
    expect((await client.callTool({ name: 'files_read_thing', arguments: {} })).isError).toBeFalsy()
    const refused = await client.callTool({ name: 'files_read_thing', arguments: {} })
    expect(refused.isError).toBe(true)
    expect(JSON.stringify(refused.content)).toMatch(/limit-exceeded: .*try again in \d+ s/)
    expect(Object(refused._meta)['sallyport/error']).toMatchObject({
      code: 'limit-exceeded',
      retryAfter: expect.any(Number),
    })
  }
})

it('bounds a server and a tool for all agents together', async () => {
  const { gateway, received } = await start(
    {},
    {
      servers: {
        files: {
          ...recordingServer().server,
          limits: { callsPerMinute: 3 },
          tools: { override: { write_thing: { limits: { callsPerMinute: 1 } } } },
        },
        free: recordingServer().server,
      },
    },
  )
  await using _ = gateway
  const ends: string[] = []
  for (const [agent, tool] of [
    ['a', 'files_write_thing'],
    ['b', 'files_write_thing'],
    ['b', 'files_read_thing'],
    ['c', 'files_read_thing'],
    ['d', 'files_read_thing'],
    ['d', 'free_read_thing'],
  ] as const) {
    const outcome = await call(gateway, tool, { as: agent })
    ends.push(outcome.kind === 'refused' ? (outcome.error.message.split(' had ')[0] ?? '') : 'answered')
  }
  expect(ends).toEqual([
    'answered',
    'The tool write_thing of files',
    'answered',
    'answered',
    'The server files',
    'answered',
  ])
  expect(await received()).toEqual([])
})

it('lets an agent of its own limits do more than the others, or less', async () => {
  const { gateway } = await start(
    { callsPerMinute: 2 },
    { agents: { fast: { limits: { callsPerMinute: 5 } }, slow: { limits: { callsPerMinute: 1 } } } },
  )
  await using _ = gateway
  const admitted = async (agent: string) => {
    const codes = []
    for (let n = 0; n < 6; n++) codes.push((await post(gateway, agent, 'files_read_thing')).status)
    return codes.filter((code) => code === 200).length
  }
  expect([await admitted('fast'), await admitted('slow'), await admitted('usual')]).toEqual([5, 1, 2])
})

it('ends a command over the limit with words that say when to try again', async () => {
  const config = { servers: { files: recording() }, rules: [{ action: 'allow' }], limits: { callsPerMinute: 1 } }
  await using gateway = await serve(config)
  await until(async () => ((await gateway.run('tools', 'list')).stdout.includes('files_read_thing') ? true : undefined))
  expect((await gateway.run('tools', 'call', 'files_read_thing')).code).toBe(0)
  const refused = await gateway.run('tools', 'call', 'files_read_thing', '--json')
  expect(refused.code).toBe(1)
  expect(refused.json()).toMatchObject({
    error: { code: 'limit-exceeded', message: expect.stringMatching(/try again in \d+ s$/) },
  })
})
