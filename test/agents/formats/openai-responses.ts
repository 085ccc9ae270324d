import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { type Chunk, type Format, type OfferedTool, type Reply, toList, toText } from './format.ts'

const usage = {
  input_tokens: 1,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 1,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 2,
}

/** OpenAI's responses; Codex speaks it, and gathers the tools of a server in a namespace. */
export const openaiResponses: Format = {
  reads: (path) => path.endsWith('/responses'),
  read: (body) => ({
    tools: toList(body.tools).flatMap(toTools),
    results: toList(body.input)
      .map(toFields)
      .filter(({ type }) => type === 'function_call_output')
      .map(({ output }) => toText(output)),
  }),
  streams: (_, { stream }) => stream === true,
  write(reply, id) {
    const item = toItem(reply, id)
    const response = { id: `resp_${id}`, object: 'response', created_at: 1, model: 'scripted', usage }
    const whole = { ...response, status: 'completed', output: [item] }
    return {
      whole,
      stream: [
        toEvent('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
        toEvent('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress' } }),
        toEvent('response.output_item.done', { output_index: 0, item }),
        toEvent('response.completed', { response: whole }),
      ],
    }
  },
}

function toTools(offered: unknown): OfferedTool[] {
  const { type, name, tools } = toFields(offered)
  if (type !== 'namespace') return [{ name: String(name ?? type) }]
  return toList(tools).map((tool) => ({ name: String(toFields(tool).name), namespace: String(name) }))
}

function toItem(reply: Reply, id: string): Fields {
  if (reply.kind === 'text') {
    const content = [{ type: 'output_text', text: reply.text, annotations: [] }]
    return { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content }
  }
  const given = JSON.stringify(reply.arguments)
  return { type: 'function_call', id: `fc_${id}`, call_id: id, ...reply.tool, arguments: given, status: 'completed' }
}

function toEvent(event: string, fields: object): Chunk {
  return { event, data: { type: event, ...fields } }
}
