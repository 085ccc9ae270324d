// An MCP server over stdio whose one tool never ends its line.
import { createInterface } from 'node:readline'

const tool = { name: 'flood', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }
const piece = 'x'.repeat(65_536)

function flood() {
  while (process.stdout.write(piece));
  process.stdout.once('drain', flood)
}

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'endless', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [tool] }),
  ping: () => ({}),
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'tools/call') return flood()
  const answer = answers[method]
  const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: 'No such method' } }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`)
})
