import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, startProgram } from '../lib/program.ts'
import { peerScript } from './install-peers.ts'
import { type EchoServer, type StartTarget, sameName } from './target.ts'

/** `mcp-hub` offers many servers at one address. Its clients must use HTTP+SSE of 2024. */
export const startMcpHub: StartTarget = async ({ folder, servers }) => {
  const port = await freePort()
  const config = join(folder, 'mcp-hub.json')
  await mkdir(folder, { recursive: true })
  await writeFile(config, JSON.stringify({ mcpServers: Object.fromEntries(servers.map(toHubServer)) }))
  const program = await startProgram({
    args: [peerScript('mcp-hub'), '--port', String(port), '--config', config],
    env: { HOME: folder, XDG_STATE_HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    url: `http://127.0.0.1:${port}`,
  })
  return {
    way: { kind: 'old-sse', url: `${program.url}/mcp` },
    pid: program.pid,
    toolName: (server, tool) => `${server}__${tool}`,
    close: program.stop,
  }
}

function toHubServer(server: EchoServer): [string, object] {
  const { name } = server
  if (server.transport === 'http') return [name, { url: server.url }]
  return [name, { command: server.command, args: server.args }]
}

/** `mcp-proxy` offers one stdio server over HTTP. */
export const startMcpProxy: StartTarget = async ({ servers: [server] }) => {
  const { command, args } = toCommand(server)
  const port = await freePort()
  const options = ['--port', String(port), '--host', '127.0.0.1', '--server', 'stream']
  const program = await startProgram({
    args: [peerScript('mcp-proxy'), ...options, '--', command, ...args],
    url: `http://127.0.0.1:${port}`,
  })
  return {
    way: { kind: 'http', url: `${program.url}/mcp`, headers: {} },
    pid: program.pid,
    toolName: sameName,
    close: program.stop,
  }
}

/** `supergateway` offers one stdio server over HTTP, and starts a server process for every session. */
export const startSupergateway: StartTarget = async ({ servers: [server] }) => {
  const { command, args } = toCommand(server)
  const port = await freePort()
  const options = ['--outputTransport', 'streamableHttp', '--stateful', '--port', String(port), '--logLevel', 'none']
  const program = await startProgram({
    args: [peerScript('supergateway'), '--stdio', [command, ...args].join(' '), ...options],
    url: `http://127.0.0.1:${port}`,
  })
  return {
    way: { kind: 'http', url: `${program.url}/mcp`, headers: {} },
    pid: program.pid,
    toolName: sameName,
    close: program.stop,
  }
}

function toCommand(server: EchoServer): { command: string; args: readonly string[] } {
  if (server.transport === 'stdio') return server
  throw new Error('This target supports only stdio servers')
}
