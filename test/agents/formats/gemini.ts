import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { type Format, toList } from './format.ts'

/** Google's `generateContent`, whole or in events; Gemini CLI speaks it. */
export const gemini: Format = {
  reads: (path) => /:(streamG|g)enerateContent$/.test(path),
  read: (body) => ({
    tools: toList(body.tools)
      .flatMap((tool) => toList(toFields(tool).functionDeclarations))
      .map((declared) => ({ name: String(toFields(declared).name) })),
    results: toList(body.contents)
      .flatMap((content) => toList(toFields(content).parts))
      .map((part) => toFields(part).functionResponse)
      .filter((response) => response !== undefined)
      .map((response) => JSON.stringify(toFields(response).response)),
  }),
  streams: (path) => path.includes(':stream'),
  write(reply) {
    const part =
      reply.kind === 'call' ? { functionCall: { name: reply.tool.name, args: reply.arguments } } : { text: reply.text }
    const whole = {
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      modelVersion: 'scripted',
    }
    return { whole, stream: [{ data: whole }] }
  },
}
