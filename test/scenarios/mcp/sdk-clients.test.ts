import type { Client as ClientV2 } from '@modelcontextprotocol/client'
import type { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { readCancellations, readRecord, startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { allowAll, namesIn, recordedCalls, startRecordingGateway, textOf } from './raw.ts'

type Kind = 'v1' | 'v2 legacy' | 'v2 auto'
type Call = { name: string; arguments?: Record<string, unknown> }
type Progress = { progress: number; total?: number | undefined }
type Options = { signal?: AbortSignal; onprogress?: (progress: Progress) => void }

/** What a test does with a client, whichever SDK it comes from. */
type AnyClient = {
  list(): Promise<unknown>
  call(call: Call, options?: Options): Promise<unknown>
  onListChanged(told: () => void): Promise<void>
}

let gateway: TestGateway
let record: string

beforeAll(async () => {
  const started = await startRecordingGateway({ rules: allowAll })
  ;({ gateway, record } = started)
  return started.close
})

async function connect(kind: Kind, to = gateway, agent = 'agent'): Promise<AnyClient> {
  if (kind === 'v1') return fromV1(await to.connectV1(agent))
  return fromV2(await to.connectV2(agent, { mode: kind === 'v2 auto' ? 'auto' : 'legacy' }))
}

function fromV1(client: ClientV1): AnyClient {
  return {
    list: () => client.listTools(),
    call: (call, options) => client.callTool(call, undefined, options),
    async onListChanged(told) {
      client.setNotificationHandler(ToolListChangedNotificationSchema, told)
    },
  }
}

function fromV2(client: ClientV2): AnyClient {
  return {
    list: () => client.listTools(),
    call: (call, options) => client.callTool(call, options),
    async onListChanged(told) {
      client.setNotificationHandler('notifications/tools/list_changed', told)
      if (client.getProtocolEra() === 'modern') await client.listen({ toolsListChanged: true })
    },
  }
}

describe.each<Kind>(['v1', 'v2 legacy', 'v2 auto'])('the official client %s', (kind) => {
  it('lists the tools and calls one', async () => {
    const client = await connect(kind)
    expect(namesIn(await client.list())).toContain('rec_echo')
    expect(textOf(await client.call({ name: 'rec_echo', arguments: { text: 'hello' } }))).toBe('hello')
  })

  it('gets the failure of a tool as a result that a model can read', async () => {
    const client = await connect(kind)
    const result = await client.call({ name: 'rec_fail' })
    expect(result).toMatchObject({ isError: true })
    expect(textOf(result)).toBe('The tool failed on purpose')
  })

  it('gets structured content whole and checks it against the schema that it was shown', async () => {
    const client = await connect(kind)
    await client.list()
    expect(await client.call({ name: 'rec_structured' })).toMatchObject({ structuredContent: { answer: 42 } })
  })

  it('hears of the progress of its call, under its own token', async () => {
    const client = await connect(kind)
    const heard: Progress[] = []
    const onprogress = (progress: Progress) => heard.push(progress)
    const result = await client.call({ name: 'rec_progress', arguments: { steps: 4 } }, { onprogress })
    expect(textOf(result)).toBe('4 steps')
    expect(heard.map(({ progress }) => progress)).toEqual([1, 2, 3, 4])
  })

  it('cancels a call all the way to the server', async () => {
    const client = await connect(kind)
    const nonce = `cancel-${kind}`
    const taken = new AbortController()
    const call = client.call(
      { name: 'rec_echo', arguments: { text: nonce, delayMs: 60_000 } },
      { signal: taken.signal },
    )
    call.catch(() => {})
    const received = await poll(async () => (await readRecord(record)).find((one) => one.arguments?.text === nonce))
    taken.abort()
    await expect(call).rejects.toThrow()
    await poll(async () => (await readCancellations(record)).find(({ cancelled }) => cancelled === received.id))
    const ended = await poll(async () =>
      (await recordedCalls(gateway)).find((one) => JSON.stringify(one.arguments).includes(nonce) && one.endedAt),
    )
    expect(ended.state).toBe('cancelled')
  })

  it('hears that the list of tools has changed and finds the new tool in it', async () => {
    const client = await connect(kind)
    const name = `new_${kind.replace(' ', '_')}`
    let told = 0
    await client.onListChanged(() => {
      told += 1
    })
    await client.call({ name: 'rec_change_list', arguments: { name } })
    await poll(() => told > 0 || undefined)
    expect(namesIn(await client.list())).toContain(`rec_${name}`)
    expect(textOf(await client.call({ name: `rec_${name}`, arguments: { a: 1 } }))).toBe('{"a":1}')
  })
})

it('answers the ping of a client with a session', async () => {
  const v1 = await gateway.connectV1('agent')
  const v2 = await gateway.connectV2('agent', { mode: 'legacy' })
  expect(await v1.ping()).toEqual({})
  expect(await v2.ping()).toMatchObject({})
})

it('speaks the stateless era with a client that can, and sessions with one that wants them', async () => {
  const auto = await gateway.connectV2('agent', { mode: 'auto' })
  const legacy = await gateway.connectV2('agent', { mode: 'legacy' })
  expect(auto.getProtocolEra()).toBe('modern')
  expect(auto.getServerVersion()).toMatchObject({ name: 'sallyport' })
  expect(legacy.getProtocolEra()).toBe('legacy')
  expect(legacy.getServerVersion()).toMatchObject({ name: 'sallyport' })
})

it('serves many clients of both eras at once, each with its own answers and its own progress', async () => {
  const kinds: Kind[] = ['v1', 'v2 legacy', 'v2 auto']
  const clients = await Promise.all(
    Array.from({ length: 12 }, (_, index) => connect(kinds[index % 3] ?? 'v1', gateway, `agent-${index}`)),
  )
  const talks = clients.map(async (client, index) => {
    for (let round = 0; round < 10; round++) {
      const text = `${index}/${round}`
      const delayMs = (index * 7 + round * 13) % 40
      expect(textOf(await client.call({ name: 'rec_echo', arguments: { text, delayMs } }))).toBe(text)
    }
    const steps: number[] = []
    const total = 2 + (index % 4)
    await client.call(
      { name: 'rec_progress', arguments: { steps: total } },
      { onprogress: ({ progress }) => steps.push(progress) },
    )
    expect(steps).toEqual(Array.from({ length: total }, (_, step) => step + 1))
  })
  await Promise.all(talks)
})

it('bridges the eras: each client reaches servers of the other one as well', async () => {
  await using modern = await startHttpFixture('era', ['--era', '2026-07-28', '--http'])
  await using older = await startHttpFixture('era', ['--era', '2025-06-18', '--http'])
  await using bridge = await startTestGateway({
    servers: {
      modern: { transport: 'http', url: modern.url },
      older: { transport: 'http', url: older.url },
      pipe: stdioFixture('era', ['--era', '2026-07-28']),
    },
  })
  for (const kind of ['v1', 'v2 legacy', 'v2 auto'] as const) {
    const client = await connect(kind, bridge)
    for (const server of ['modern', 'older', 'pipe']) {
      const heard: number[] = []
      const result = await client.call(
        { name: `${server}_progress`, arguments: { steps: 2 } },
        { onprogress: ({ progress }) => heard.push(progress) },
      )
      expect(textOf(result), `${kind} to ${server}`).toBe('2 steps')
      expect(heard, `${kind} to ${server}`).toEqual([1, 2])
    }
  }
})
