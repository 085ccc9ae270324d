import type { JsonObject } from '../../contract/json.ts'
import { isObject, parseJson } from '../../lib/json.ts'
import { findMirrors, type Mirror, toMirrorHeaders } from '../../wire/mirrors.ts'
import type { Http } from './http.ts'
import { credentials, type Joined } from './joining.ts'
import { type Message, readMessage } from './message.ts'

/** HTTP requires some arguments in headers too. Clients on stdio do not send headers, so they are made from the schemas. */
export type Mirrored = {
  headersFor(message: Message): Record<string, string>
  /** Called when the gateway reports a missing header: reads the schemas again. */
  learn(gateway: Joined, message: Message, signal: AbortSignal): Promise<void>
}

const mostPages = 200

export function createMirrored({ http, path }: { http: Http; path: string }): Mirrored {
  /** Tools with mirrored arguments. */
  const known = new Map<string, readonly Mirror[]>()

  function remember(tool: unknown): void {
    if (!isObject(tool) || typeof tool.name !== 'string' || !isObject(tool.inputSchema)) return
    const found = findMirrors(tool.inputSchema)
    if ('mirrors' in found && found.mirrors.length > 0) known.set(tool.name, found.mirrors)
  }

  return {
    headersFor({ method, params }) {
      const mirrors = method === 'tools/call' && typeof params.name === 'string' ? known.get(params.name) : undefined
      return mirrors ? toMirrorHeaders(mirrors, isObject(params.arguments) ? params.arguments : {}) : {}
    },
    async learn(gateway, message, signal) {
      known.clear()
      let cursor: string | undefined
      for (let page = 0; page < mostPages; page++) {
        const params = { _meta: message.params._meta, ...(cursor !== undefined && { cursor }) }
        const request = { jsonrpc: '2.0', id: 'schemas', method: 'tools/list', params }
        const { line, headers } = readMessage(Buffer.from(JSON.stringify(request)))
        const url = new URL(path, gateway.url)
        const sending = { url, headers: { ...headers, ...credentials(gateway.token) }, body: line, signal }
        const { tools, nextCursor } = resultOf((await http.send({ method: 'POST', ...sending })).body)
        for (const tool of Array.isArray(tools) ? tools : []) remember(tool)
        if (typeof nextCursor !== 'string') return
        cursor = nextCursor
      }
    },
  }
}

function resultOf(body: Buffer): JsonObject {
  const answer = parseJson(body)
  return isObject(answer) && isObject(answer.result) ? answer.result : {}
}
