import { expect, it } from 'vitest'
import { poll, startTestGateway } from '../../support/gateway.ts'

/** A program of the older era in a few lines: it answers `initialize` as given, and everything else by `answer`. */
function program(initialized: string, answer: string) {
  const script = `
    const say = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }))
    let lists = 0
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (method === 'initialize')
        return say({ id, result: { protocolVersion: '2025-11-25', serverInfo: { name: 'p', version: '1' }, ${initialized} } })
      if (id === undefined) return
      if (method !== 'tools/list') return say({ id, error: { code: -32601, message: 'no' } })
      lists++
      ${answer}
    })`
  return { transport: 'stdio' as const, command: process.execPath, args: ['-e', script] }
}

const tool = (name: string) => `{ name: '${name}', inputSchema: { type: 'object' } }`

it('a list that changes while it is read for the first time is read again', async () => {
  const server = program(
    'capabilities: { tools: { listChanged: true } }',
    `if (lists === 1) say({ method: 'notifications/tools/list_changed' })
     say({ id, result: { tools: lists === 1 ? [${tool('a')}] : [${tool('a')}, ${tool('b')}] } })`,
  )
  await using test = await startTestGateway({ servers: { p: server } })
  await poll(() => test.gateway.catalog.view({ kind: 'agent', name: 'a' }, { kind: 'all' }).tools.get('p_b'))
})

it('a server that says endlessly much of itself does not make every first answer endless', async () => {
  const server = program(
    `capabilities: { tools: {}, extensions: { 'example.com/large': { text: 'x'.repeat(100_000) }, 'example.com/small': {} } },
     instructions: 'y'.repeat(1_000_000)`,
    'say({ id, result: { tools: [] } })',
  )
  await using test = await startTestGateway({ servers: { p: server } })
  await test.reach('p', 'connected')
  const agent = { kind: 'agent', name: 'a' } as const
  const all = test.gateway.introduce(agent, { kind: 'all' })
  expect(all.instructions?.length).toBeLessThan(10_000)
  expect(all.extensions).toEqual({ 'example.com/small': {} })
  expect(test.gateway.introduce(agent, { kind: 'server', name: 'p' }).instructions).toHaveLength(64 * 1024)
})
