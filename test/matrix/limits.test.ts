import { readdir } from 'node:fs/promises'
import { StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect, it } from 'vitest'
import { stdioFixture } from '../fixtures/fixtures.ts'
import { textOf } from '../scenarios/mcp/raw.ts'
import { poll, startTestGateway } from '../support/gateway.ts'
import { connectV1, connectV2 } from './client.ts'
import { drives, tryOut } from './matrix.ts'
import { askLater } from './questions.ts'
import { clientKinds, featureNames, impossible, neverPossible, notOffered, verdictOf } from './table.ts'

it('tries every kind of agent that the table names', async () => {
  const named = clientKinds.map(({ era, transport }) => `${era}-${transport}.test.ts`)
  const files = await readdir(import.meta.dirname)
  expect(named.filter((file) => !files.includes(file))).toEqual([])
})

it('sees every drive work: in a cell of the table, or without a gateway where no cell has the feature', () => {
  expect(Object.keys(drives).toSorted()).toEqual([...featureNames].toSorted())
  expect(neverPossible()).toEqual(['roots-changed', 'questions-unprompted'])
})

it.each(neverPossible())('drives %s rightly: without a gateway it works', async (feature) => {
  const { command, args } = stdioFixture('matrix', ['--era', 'legacy', '--transport', 'stdio'])
  const open = () => connectV1(new StdioClientTransport({ command, args, stderr: 'ignore' }))
  const client = await open()
  const pair = { client: { era: 'legacy', transport: 'stdio' }, server: { era: 'legacy', transport: 'stdio' } } as const
  try {
    await tryOut(feature, { pair, client, connect: open }, 10_000)
  } finally {
    await client.close()
  }
})

it('takes a broken try for what it is and not for an impossibility', async () => {
  const wrong = [new Error('fetch failed'), new Error('Connection closed'), new Error('MCP error -32602: no such tool')]
  for (const { fails } of impossible) for (const { message } of wrong) expect(message).not.toMatch(fails)
  const legacy = { era: 'legacy', transport: 'http' } as const
  const verdict = verdictOf('ping', {
    client: { ...legacy, era: 'modern' },
    server: { era: 'legacy', transport: 'json' },
  })
  expect(verdict).toMatchObject({ kind: 'impossible', fails: expect.any(RegExp) })
})

it('says in the table that agents find no HTTP+SSE here', () => {
  expect(notOffered.map(({ what }) => what)).toEqual(['HTTP+SSE'])
})

it('refuses an agent that wants HTTP+SSE', async () => {
  await using gateway = await startTestGateway({})
  const headers = { authorization: `Bearer ${await gateway.token('old')}` }
  for (const path of ['/mcp', '/sse', '/mcp/sse']) {
    const transport = new SSEClientTransport(new URL(path, gateway.url), { requestInit: { headers } })
    await expect(connectV1(transport), path).rejects.toThrow(/4\d\d/)
  }
})

it('answers a call that might have become a task when it is done, where the eras differ', async () => {
  const fixture = (era: string) => stdioFixture('matrix', ['--era', era, '--transport', 'stdio'])
  const servers = { old: fixture('legacy'), new: fixture('modern') }
  await using gateway = await startTestGateway({ servers, rules: [{ action: 'allow' }] })
  await gateway.reach('old', 'connected')
  await gateway.reach('new', 'connected')
  const requestInit = { headers: { authorization: `Bearer ${await gateway.token('agent')}` } }
  const to = (server: string) => new URL(`/mcp/s/${server}`, gateway.url)
  const older = await connectV1(new HttpV1(to('new'), { requestInit }))
  const newer = await connectV2(new HttpV2(to('old'), { requestInit }), 'modern')
  const call = { name: 'slow_compute', arguments: { seconds: 0.01, label: 'it' } }
  expect(textOf(await older.request('tools/call', { ...call, task: { ttl: 60_000 } }))).toBe('Computed it')
  expect(textOf(await newer.request('tools/call', call))).toBe('Computed it')
  await Promise.all([older.close(), newer.close()])
})

it('tells a server that asks for roots outside of any call that there are none', async () => {
  const server = stdioFixture('matrix', ['--era', 'legacy', '--transport', 'stdio'])
  await using gateway = await startTestGateway({ servers: { asking: server }, rules: [{ action: 'allow' }] })
  await gateway.reach('asking', 'connected')
  const requestInit = { headers: { authorization: `Bearer ${await gateway.token('agent')}` } }
  const client = await connectV1(new HttpV1(new URL('/mcp/s/asking', gateway.url), { requestInit }))
  expect(await askLater(client, poll, { key: 'later', roots: 'yes' })).toBe('answered later {"roots":[]}')
  expect(client.asked).toEqual([])
  await client.close()
})
