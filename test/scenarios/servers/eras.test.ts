import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fixturePath, type HttpFixture, startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { acceptTools, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startRelay } from './relay.ts'
import { call, temporaryFolder } from './support.ts'

type Way = {
  readonly era: string
  readonly over: 'stdio' | 'http' | 'sse'
  readonly answer?: 'json' | 'sse'
}

const ways: Way[] = [
  { era: '2024-11-05', over: 'stdio' },
  { era: '2025-06-18', over: 'stdio' },
  { era: '2025-11-25', over: 'stdio' },
  { era: '2026-07-28', over: 'stdio' },
  { era: '2024-11-05', over: 'sse' },
  { era: '2024-11-05', over: 'http' },
  { era: '2025-06-18', over: 'http', answer: 'json' },
  { era: '2025-06-18', over: 'http', answer: 'sse' },
  { era: '2025-11-25', over: 'http', answer: 'json' },
  { era: '2025-11-25', over: 'http', answer: 'sse' },
  { era: '2026-07-28', over: 'http', answer: 'json' },
  { era: '2026-07-28', over: 'http', answer: 'sse' },
  { era: '2026-07-28', over: 'http' },
]
const named = ways.map((way) => ({
  ...way,
  name: `${way.era} over ${way.over}${way.answer ? `, answering in ${way.answer}` : ''}`,
}))

describe.each(named)('a server of $name', (way) => {
  it('lists, answers, tells progress and changes, and hears of cancellation, in its own revision', async () => {
    await using server = await startEra(way)
    await using gateway = await startTestGateway({ servers: { era: server.definition } })
    const { protocol, serverInfo, tools, complete } = await gateway.reach('era', 'connected')
    expect(protocol).toBe(way.era)
    expect(serverInfo).toEqual({ name: `era-${way.era}`, version: '1.0.0' })
    expect(tools).toBe(7)
    expect(complete).toBe(true)
    const client = await gateway.connectV1('tester')
    const said = 'žluťoučký "kůň" \u2028 👩‍🚀'
    expect(await call(client, 'era_echo', { text: said })).toMatchObject({ text: said, isError: false })
    const { headers } = toFields(JSON.parse((await call(client, 'era_era')).text))
    if (way.over !== 'stdio') expect(toFields(headers)['mcp-protocol-version']).toBe(way.era)
    expect((await call(client, 'era_nothing')).code).toBe('tool-not-found')
    await expectListChange(gateway)
    const heard: number[] = []
    const onprogress = ({ progress }: { progress: number }) => {
      heard.push(progress)
    }
    expect(await call(client, 'era_progress', { steps: 3, intervalMs: 50 }, { onprogress })).toMatchObject({
      text: '3 steps',
    })
    // A server that answers in JSON alone has no way to say anything before its answer.
    if (way.answer !== 'json') expect(heard).toEqual([1, 2, 3])

    const controller = new AbortController()
    const waiting = call(client, 'era_slow', { ms: 60_000 }, { signal: controller.signal }).catch(() => undefined)
    await poll(() => (gateway.gateway.status().calls.running === 1 ? true : undefined))
    await new Promise((resolve) => setTimeout(resolve, 100))
    controller.abort()
    await waiting
    await poll(async () => ((await call(client, 'era_cancelled')).text === '1' ? true : undefined))
  })
})

describe('what worked', () => {
  it.each(named)('for $name is tried first after a restart', async (way) => {
    await using folder = await temporaryFolder()
    await using server = await startListenedEra(way, folder.path)
    const config = { servers: { era: server.definition } }
    for (const start of ['first', 'second']) {
      const before = (await server.requests()).length
      await using gateway = await startTestGateway(config, { folder: folder.path })
      const { protocol } = await gateway.reach('era', 'connected')
      expect(protocol).toBe(way.era)
      const [first] = (await server.requests()).slice(before)
      if (start === 'second') expect(first).toBe(firstRequest(way))
    }
  })

  it('gives way to what works now, when the server has changed meanwhile', async () => {
    await using folder = await temporaryFolder()
    await using modern = await startHttpFixture('era', ['--http', '--era', '2026-07-28'])
    await using legacy = await startHttpFixture('era', ['--http', '--era', '2025-11-25'])
    await using relay = await startRelay(modern.url)
    const config = { servers: { era: { transport: 'http' as const, url: relay.url } } }
    for (const [target, era] of [
      [modern.url, '2026-07-28'],
      [legacy.url, '2025-11-25'],
      [modern.url, '2026-07-28'],
    ] as const) {
      relay.leadTo(target)
      await using gateway = await startTestGateway(config, { folder: folder.path })
      const { protocol } = await gateway.reach('era', 'connected')
      expect(protocol).toBe(era)
    }
  })
})

type Definition = { transport: 'stdio'; command: string; args: string[] } | { transport: 'http' | 'sse'; url: string }
type EraServer = AsyncDisposable & { readonly definition: Definition }

async function startEra(way: Way): Promise<EraServer> {
  if (way.over === 'stdio') {
    return { definition: stdioFixture('era', ['--era', way.era]), async [Symbol.asyncDispose]() {} }
  }
  const fixture = await startEraOverHttp(way)
  return { definition: { transport: way.over, url: fixture.url }, [Symbol.asyncDispose]: fixture.stop }
}

function startEraOverHttp({ era, answer }: Way): Promise<HttpFixture> {
  return startHttpFixture('era', ['--http', '--era', era, ...(answer ? ['--answer', answer] : [])])
}

/** The same, with a look at what the gateway asks. */
async function startListenedEra(
  way: Way,
  folder: string,
): Promise<EraServer & { requests(): string[] | Promise<string[]> }> {
  if (way.over === 'stdio') {
    const heard = join(folder, 'heard')
    const listen = 'tee -a "$1" | "$2" "$3" --era "$4"'
    return {
      definition: {
        transport: 'stdio',
        command: 'sh',
        args: ['-c', listen, 'sh', heard, process.execPath, fixturePath('era'), way.era],
      },
      requests: () => heardMethods(heard),
      async [Symbol.asyncDispose]() {},
    }
  }
  const fixture = await startEraOverHttp(way)
  const relay = await startRelay(fixture.url)
  return {
    definition: { transport: way.over, url: relay.url },
    requests: relay.requests,
    async [Symbol.asyncDispose]() {
      await relay.stop()
      await fixture.stop()
    },
  }
}

async function heardMethods(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => String(toFields(JSON.parse(line)).method))
}

function firstRequest({ era, over }: Way): string {
  if (era === '2026-07-28') return 'server/discover'
  return era === '2024-11-05' && over !== 'stdio' ? 'GET' : 'initialize'
}

async function expectListChange(gateway: TestGateway): Promise<void> {
  const client = await gateway.connectV1('tester')
  const names = () => gateway.gateway.servers.get(undefined, 'era').tools.map(({ original }) => original)
  // Listening begins beside the first list: a change is told only to who listens already.
  await poll(async () => {
    await call(client, 'era_change_list', { name: 'added_later' })
    return names().includes('added_later') ? true : undefined
  })
  await acceptTools(gateway, 'era')
  await poll(async () => ((await call(client, 'era_added_later', { a: 1 })).text === '{"a":1}' ? true : undefined))
  await call(client, 'era_change_list', { name: 'added_later', remove: true })
  await poll(() => (names().includes('added_later') ? undefined : true))
}
