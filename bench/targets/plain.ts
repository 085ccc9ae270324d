import { fileURLToPath } from 'node:url'
import { startProgram } from '../lib/program.ts'
import { type EchoServer, type StartTarget, sameName } from './target.ts'

/** No proxy: the client connects directly to the server. This is the lower bound. */
export const startDirect: StartTarget = async ({ servers: [server] }) => ({
  way:
    server.transport === 'http'
      ? { kind: 'http', url: server.url, headers: {} }
      : { kind: 'stdio', command: server.command, args: [...server.args] },
  pid: undefined,
  toolName: sameName,
  close: async () => {},
})

export const startRawHttp: StartTarget = startProxy('raw-http')
export const startRawUndici: StartTarget = startProxy('raw-undici')
export const startRawPipe: StartTarget = startProxy('raw-pipe')
export const startSdk: StartTarget = startProxy('sdk')

function startProxy(name: string): StartTarget {
  const script = fileURLToPath(new URL(`../proxies/${name}.ts`, import.meta.url))
  return async ({ servers: [server] }) => {
    const program = await startProgram({ args: [script, ...toArguments(server)] })
    return {
      way: { kind: 'http', url: `${program.url}/mcp`, headers: {} },
      pid: program.pid,
      toolName: sameName,
      close: program.stop,
    }
  }
}

function toArguments(server: EchoServer): readonly string[] {
  return server.transport === 'http' ? [server.url] : [server.command, ...server.args]
}
