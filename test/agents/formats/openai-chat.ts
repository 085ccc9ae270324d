import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { type Format, type Reply, toList, toText } from './format.ts'

const model = 'scripted'
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

/** OpenAI's chat completions, which most services offer too; OpenCode speaks it. */
export const openaiChat: Format = {
  reads: (path) => path.endsWith('/chat/completions'),
  read: (body) => ({
    tools: toList(body.tools).map((tool) => ({ name: String(toFields(toFields(tool).function).name) })),
    results: toList(body.messages)
      .map(toFields)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => toText(content)),
  }),
  streams: (_, { stream }) => stream === true,
  write(reply, id) {
    const message = toMessage(reply, id)
    const finish_reason = reply.kind === 'call' ? 'tool_calls' : 'stop'
    const answer = { id, created: 1, model, usage }
    const chunk = { id, created: 1, model, object: 'chat.completion.chunk' }
    return {
      whole: { ...answer, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }] },
      stream: [
        { data: { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] } },
        { data: { ...chunk, choices: [{ index: 0, delta: {}, finish_reason }], usage } },
        { data: '[DONE]' },
      ],
    }
  },
}

function toMessage(reply: Reply, id: string): Fields {
  if (reply.kind === 'text') return { role: 'assistant', content: reply.text }
  const called = { name: reply.tool.name, arguments: JSON.stringify(reply.arguments) }
  return { role: 'assistant', content: null, tool_calls: [{ index: 0, id, type: 'function', function: called }] }
}
