import type { Client as ClientV2 } from '@modelcontextprotocol/client'
import type { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { readCancellations, readRecord, startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { poll } from '../../support/gateway.ts'
import { ownTools, textOf } from '../mcp/raw.ts'
import { createPlace, type Place, untilConnected } from './support.ts'

type Kind = 'v1' | 'v2 legacy' | 'v2 auto'
type Call = { name: string; arguments?: Record<string, unknown> }
type Options = { signal?: AbortSignal; onprogress?: (progress: { progress: number }) => void }

type AnyClient = {
  list(): Promise<{ tools: { name: string }[] }>
  call(call: Call, options?: Options): Promise<unknown>
  onListChanged(told: () => void): Promise<void>
  close(): Promise<void>
}

let place: Place

beforeAll(async () => {
  place = await createPlace()
  // The gateway runs as long as a program uses it: without this one, every test would start another gateway.
  await place.program().greet()
  return () => place[Symbol.asyncDispose]()
})

async function connect(kind: Kind, ...args: string[]): Promise<AnyClient> {
  if (kind === 'v1') return fromV1(await place.clientV1(...args))
  return fromV2(await place.clientV2(kind === 'v2 auto' ? 'auto' : 'legacy', ...args))
}

function fromV1(client: ClientV1): AnyClient {
  return {
    list: () => client.listTools(),
    call: (call, options) => client.callTool(call, undefined, options),
    async onListChanged(told) {
      client.setNotificationHandler(ToolListChangedNotificationSchema, told)
    },
    close: () => client.close(),
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
    close: () => client.close(),
  }
}

describe.each<Kind>(['v1', 'v2 legacy', 'v2 auto'])('the official client %s over stdio', (kind) => {
  it('lists the tools and calls many at once, each answered by its own', async () => {
    const client = await connect(kind)
    expect(await untilConnected(client.list)).toContain('rec_echo')
    const texts = Array.from({ length: 30 }, (_, index) => `${kind} ${index}`)
    const calls = texts.map((text, index) =>
      client.call({ name: 'rec_echo', arguments: { text, delayMs: (30 - index) * 5 } }),
    )
    expect((await Promise.all(calls)).map(textOf)).toEqual(texts)
    await client.close()
  })

  it('hears of the progress of its call', async () => {
    const client = await connect(kind)
    await untilConnected(client.list)
    let heard: number[] = []
    const onprogress = ({ progress }: { progress: number }) => heard.push(progress)
    // The official clients lose notices that arrive together with the answer; on a busy machine all of them may.
    for (let attempt = 0; attempt < 5 && heard.length === 0; attempt++) {
      heard = []
      const result = await client.call({ name: 'rec_progress', arguments: { steps: 4 } }, { onprogress })
      expect(textOf(result)).toBe('4 steps')
    }
    expect(heard).toEqual([1, 2, 3, 4].slice(0, Math.max(1, heard.length)))
    await client.close()
  })

  it('cancels a call all the way to the server', async () => {
    const client = await connect(kind)
    await untilConnected(client.list)
    const text = `cancelled by ${kind}`
    const taken = new AbortController()
    const call = client.call({ name: 'rec_echo', arguments: { text, delayMs: 60_000 } }, { signal: taken.signal })
    call.catch(() => {})
    const received = await poll(async () =>
      (await readRecord(place.record)).find(({ arguments: given }) => given?.text === text),
    )
    taken.abort()
    await expect(call).rejects.toThrow()
    await poll(async () =>
      (await readCancellations(place.record)).find(
        ({ cancelled, pid }) => cancelled === received.id && pid === received.pid,
      ),
    )
    await client.close()
  })

  it('hears that the list of tools has changed', async () => {
    const client = await connect(kind)
    await untilConnected(client.list)
    let told = 0
    await client.onListChanged(() => {
      told += 1
    })
    const name = `new_${kind.replace(' ', '_')}`
    await poll(async () => {
      await client.call({ name: 'rec_change_list', arguments: { name } })
      return told > 0 || undefined
    })
    expect((await client.list()).tools.map((tool) => tool.name)).toContain(`rec_${name}`)
    await client.close()
  })

  it('works again after the gateway was killed, and hears that its tools may have changed', async () => {
    const client = await connect(kind)
    await untilConnected(client.list)
    let told = 0
    await client.onListChanged(() => {
      told += 1
    })
    const before = await place.note()
    process.kill(Number(before?.pid), 'SIGKILL')
    await poll(async () => ((await place.gateways()).includes(Number(before?.pid)) ? undefined : true))
    expect(await untilConnected(client.list)).toContain('rec_echo')
    expect(textOf(await client.call({ name: 'rec_echo', arguments: { text: 'again' } }))).toBe('again')
    await poll(() => told > 0 || undefined)
    expect((await place.note())?.pid).not.toBe(before?.pid)
    await client.close()
  })

  it('reaches one server under its own names, or a toolset', async () => {
    const client = await connect(kind, '--server', 'rec')
    expect(await untilConnected(client.list)).toContain('echo')
    await client.close()
  })
})

it('offers a toolset alone', async () => {
  await using own = await createPlace({ toolsets: { few: { tools: ['rec_echo'] } } })
  const client = await own.clientV1('--toolset', 'few')
  expect(await untilConnected(() => client.listTools())).toEqual(['rec_echo', ...ownTools])
  await expect(own.clientV1('--toolset', 'none')).rejects.toThrow(/none/)
  await client.close()
})

it.each<[Kind, 'legacy' | 'modern']>([
  ['v1', 'legacy'],
  ['v1', 'modern'],
  ['v2 legacy', 'legacy'],
  ['v2 auto', 'legacy'],
  ['v2 auto', 'modern'],
])('lets the client %s answer what a %s server asks in the middle of a call', async (kind, era) => {
  await using own = await createPlace({ servers: { asking: stdioFixture('conformance', ['--era', era]) } })
  const call = { name: 'asking_test_elicitation', arguments: { message: 'Who are you?' } }
  const client =
    kind === 'v1' ? fromV1(await own.clientV1()) : fromV2(await own.clientV2(kind === 'v2 auto' ? 'auto' : 'legacy'))
  await untilConnected(client.list)
  expect(textOf(await client.call(call))).toContain('ada@example.com')
  await client.close()
})

it.each<Kind>(['v1', 'v2 auto'])(
  'repeats arguments in headers where a schema wants it, for the client %s',
  async (kind) => {
    await using server = await startHttpFixture('conformance', ['--era', 'modern', '--http', '--stdin-guard'])
    await using own = await createPlace({ servers: { marked: { transport: 'http', url: server.url } } })
    const client = kind === 'v1' ? fromV1(await own.clientV1()) : fromV2(await own.clientV2('auto'))
    await untilConnected(client.list)
    const given = { region: 'Zürich', priority: 3, verbose: true }
    const calls = [1, 2].map(() => client.call({ name: 'marked_test_header_parameters', arguments: given }))
    for (const result of await Promise.all(calls)) expect(textOf(result)).toContain('Zürich')
    await client.close()
  },
)
