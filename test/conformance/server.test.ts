import { describe, expect, it } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { startConformanceServer } from './fixture.ts'
import { startForwarder } from './forwarder.ts'
import { runSuite } from './suite.ts'

const eras = ['legacy', 'modern'] as const
const transports = ['stdio', 'http'] as const
const requirements = ['2025-11-25', '2026-07-28'] as const
const cells = eras.flatMap((era) =>
  transports.flatMap((transport) => requirements.map((revision) => ({ era, transport, revision }))),
)

describe('the official conformance suite', () => {
  it.each(cells)('finds no fault with a $era server over $transport behind the gateway ($revision)', async (cell) => {
    await using server = await startConformanceServer(cell.era, cell.transport)
    await using test = await startTestGateway({ servers: { fixture: server.definition }, rules: [{ action: 'allow' }] })
    await test.reach('fixture', 'connected')
    const target = new URL('/mcp/s/fixture', test.url)
    await using forwarder = await startForwarder(target, await test.token('suite'))
    const { code, output } = await runSuite(['server', '--url', forwarder.url, '--requirements', cell.revision])
    expect(code, output).toBe(0)
  })
})
