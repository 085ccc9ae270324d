import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { type Chunk, type Format, toList, toText } from './format.ts'

/** Anthropic's messages; Claude Code speaks it. */
export const anthropicMessages: Format = {
  reads: (path) => path.endsWith('/messages'),
  read: (body) => ({
    tools: toList(body.tools).map((tool) => ({ name: String(toFields(tool).name) })),
    results: toList(body.messages)
      .flatMap((message) => toList(toFields(message).content))
      .map(toFields)
      .filter(({ type }) => type === 'tool_result')
      .map(({ content }) => toText(content)),
  }),
  streams: (_, { stream }) => stream === true,
  write(reply, id) {
    const isCall = reply.kind === 'call'
    const block = isCall
      ? { type: 'tool_use', id: `toolu_${id}`, name: reply.tool.name, input: reply.arguments }
      : { type: 'text', text: reply.text }
    const start = isCall ? { ...block, input: {} } : { ...block, text: '' }
    const delta = isCall
      ? { type: 'input_json_delta', partial_json: JSON.stringify(reply.arguments) }
      : { type: 'text_delta', text: reply.text }
    const end = { stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null }
    const usage = { input_tokens: 1, output_tokens: 1 }
    const message = { id: `msg_${id}`, type: 'message', role: 'assistant', model: 'scripted', usage }
    return {
      whole: { ...message, content: [block], ...end },
      stream: [
        toEvent('message_start', { message: { ...message, content: [], stop_reason: null, stop_sequence: null } }),
        toEvent('content_block_start', { index: 0, content_block: start }),
        toEvent('content_block_delta', { index: 0, delta }),
        toEvent('content_block_stop', { index: 0 }),
        toEvent('message_delta', { delta: end, usage: { output_tokens: 1 } }),
        toEvent('message_stop', {}),
      ],
    }
  },
}

function toEvent(event: string, fields: object): Chunk {
  return { event, data: { type: event, ...fields } }
}
