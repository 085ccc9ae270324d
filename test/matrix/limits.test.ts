import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect, it } from 'vitest'
import { stdioFixture } from '../fixtures/fixtures.ts'
import { poll, startTestGateway } from '../support/gateway.ts'
import { connectV1 } from './client.ts'
import { noticedBy } from './stage.ts'
import { notOffered } from './table.ts'

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

it('tells a server that asks for roots outside of any call that there are none', async () => {
  const server = stdioFixture('matrix', ['--era', 'legacy', '--transport', 'stdio'])
  await using gateway = await startTestGateway({ servers: { asking: server }, rules: [{ action: 'allow' }] })
  await gateway.reach('asking', 'connected')
  const headers = { authorization: `Bearer ${await gateway.token('agent')}` }
  const client = await connectV1(
    new StreamableHTTPClientTransport(new URL('/mcp/s/asking', gateway.url), { requestInit: { headers } }),
  )
  await client.callTool({ name: 'ask_later', arguments: { key: 'later', roots: 'yes' } })
  const answered = await poll(async () => (await noticedBy(client)).find((note) => note.includes('later')))
  expect(answered).toBe('answered later {"roots":[]}')
  expect(client.asked).toEqual([])
  await client.close()
})
