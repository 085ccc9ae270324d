let lastId = 0

/** Unique in this process, because the simplest proxy assigns answers to callers by the id alone. */
export function nextId(): number {
  lastId += 1
  return lastId
}

export const protocolVersion = '2025-11-25'

export function toRequest(id: number, method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
}

export const initializeParams: string = JSON.stringify({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: 'bench', version: '1.0.0' },
})

export const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}'

export function toCall(id: number, tool: string, given: { nonce: string; bytes: number }): string {
  return toRequest(id, 'tools/call', `{"name":"${tool}","arguments":{"nonce":"${given.nonce}","size":${given.bytes}}}`)
}

export function toList(id: number): string {
  return toRequest(id, 'tools/list', '{}')
}
