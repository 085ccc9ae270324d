import { fillerFor } from './payload.ts'

/** One JSON-RPC answer in pieces, so that a megabyte of text is never copied. */
export type Pieces = readonly Buffer[]

/** Not validated: requests come from our own programs, and validation would distort the measurement. */
type Request = {
  readonly id?: number | string
  readonly method?: string
  readonly params?: {
    readonly protocolVersion?: string
    readonly arguments?: { readonly nonce?: string; readonly size?: number }
  }
}

const tail = Buffer.from('"}]}}')

/** Answers requests of the older protocol revisions; undefined for notifications. `tools` is the list as JSON. */
export function createAnswers(tools: string): (body: string) => Pieces | undefined {
  return (body) => {
    const { id, method, params = {} }: Request = JSON.parse(body)
    if (id === undefined || method === undefined) return undefined
    const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},`
    if (method === 'tools/call') {
      const { nonce = '', size = 0 } = params.arguments ?? {}
      return [Buffer.from(`${head}"result":{"content":[{"type":"text","text":"${nonce}`), fillerFor(size), tail]
    }
    if (method === 'tools/list') return [Buffer.from(`${head}"result":{"tools":${tools}}}`)]
    if (method === 'ping') return [Buffer.from(`${head}"result":{}}`)]
    if (method !== 'initialize') return [Buffer.from(`${head}"error":{"code":-32601,"message":"Method not found"}}`)]
    return [Buffer.from(`${head}"result":${toInitializeResult(params.protocolVersion)}}`)]
  }
}

function toInitializeResult(protocolVersion = '2025-11-25'): string {
  return JSON.stringify({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'echo', version: '1.0.0' },
  })
}

const inputSchema = {
  type: 'object',
  properties: {
    nonce: { type: 'string', description: 'Comes back at the start of the text' },
    size: { type: 'integer', description: 'Bytes of text to answer with' },
  },
}

/** One tool that reads and one that writes. */
export const echoTools: string = JSON.stringify([
  { name: 'echo', description: 'Answers with text', inputSchema, annotations: { readOnlyHint: true } },
  { name: 'write', description: 'Answers with text', inputSchema, annotations: { destructiveHint: false } },
])

/** Tools with definitions of a realistic size. */
export function manyTools(count: number): string {
  const tools = Array.from({ length: count }, (_, index) => ({
    name: `tool_${String(index + 1).padStart(4, '0')}`,
    description: `Tool number ${index + 1}: looks up records by name, owner and state, newest first, and returns one page of them.`,
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'Words that must occur in the record' },
        owner: { type: 'string', description: 'Only records of this owner' },
        state: { type: 'string', enum: ['open', 'closed', 'all'], default: 'open' },
        limit: { type: 'integer', minimum: 1, maximum: 100, description: 'Records on a page' },
      },
      required: ['query'],
    },
    annotations: { readOnlyHint: true },
  }))
  return JSON.stringify(tools)
}
