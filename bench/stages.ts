import { fileURLToPath } from 'node:url'
import type { Cell } from './cells.ts'
import { startMcpHub, startMcpProxy, startSupergateway } from './targets/peers.ts'
import { startDirect, startRawHttp, startRawPipe, startRawUndici, startSdk } from './targets/plain.ts'
import { startSallyport, startSallyportOf, startSallyportOnPostgres } from './targets/sallyport.ts'
import type { EchoServer, Servers, StartTarget } from './targets/target.ts'

/** A target of a stage, with its servers. */
export type Contestant = {
  readonly name: string
  readonly start: StartTarget
  readonly servers: Servers
  /** Number of tools of all its servers. */
  readonly tools: number
  readonly entries?: number
}

export type Stage = {
  readonly name: Cell['stage']
  /** The plain proxy that all other targets are compared with. */
  readonly yardstick: string
  readonly contestants: readonly Contestant[]
}

export const toolsOfMany = 1000
const stdioScript = fileURLToPath(new URL('servers/echo-stdio.ts', import.meta.url))

/**
 * All targets of a stage use the same servers; `echo` is the address of the HTTP servers. `against` is another checkout,
 * whose build is measured in turn with this one.
 */
export function toStages(echo: string, against: string | undefined): readonly Stage[] {
  const json = server('json', `${echo}/json`)
  const many = server('many', `${echo}/many`)
  const stdio: EchoServer = { name: 'pipe', transport: 'stdio', command: process.execPath, args: [stdioScript] }
  const stages: Stage[] = [
    {
      name: 'json',
      yardstick: 'raw-http',
      contestants: [...overHttp([json]), entrant('sallyport-pg', startSallyportOnPostgres, [json])],
    },
    { name: 'sse', yardstick: 'raw-http', contestants: overHttp([server('sse', `${echo}/sse`)]) },
    {
      name: 'stdio',
      yardstick: 'raw-pipe',
      contestants: [
        entrant('direct', startDirect, [stdio]),
        entrant('raw-pipe', startRawPipe, [stdio]),
        entrant('sdk', startSdk, [stdio]),
        entrant('mcp-hub', startMcpHub, [stdio]),
        entrant('mcp-proxy', startMcpProxy, [stdio]),
        entrant('supergateway', startSupergateway, [stdio]),
        entrant('sallyport', startSallyport, [stdio]),
      ],
    },
    {
      name: 'many',
      yardstick: 'raw-http',
      contestants: overHttp([many]).map((one) => ({ ...one, tools: toolsOfMany })),
    },
    {
      name: 'flat',
      yardstick: 'raw-http',
      contestants: [
        entrant('raw-http', startRawHttp, [json]),
        entrant('sallyport', startSallyport, [json]),
        entrant('sallyport-10-servers', startSallyport, [json, ...further(echo, 9)]),
        entrant('sallyport-100-servers', startSallyport, [json, ...further(echo, 99)]),
        { ...entrant('sallyport-1000-tools', startSallyport, [json, many]), tools: 2 + toolsOfMany },
        { ...entrant('sallyport-1000000-entries', startSallyport, [json]), entries: 1_000_000 },
      ],
    },
  ]
  if (against === undefined) return stages
  return stages.map((stage) => {
    const own = stage.contestants.find(({ name }) => name === 'sallyport')
    if (!own) return stage
    const before = { ...own, name: 'sallyport-before', start: startSallyportOf(against) }
    return { ...stage, contestants: [...stage.contestants, before] }
  })
}

function overHttp(servers: Servers): Contestant[] {
  return [
    entrant('direct', startDirect, servers),
    entrant('raw-http', startRawHttp, servers),
    entrant('raw-undici', startRawUndici, servers),
    entrant('sdk', startSdk, servers),
    entrant('mcp-hub', startMcpHub, servers),
    entrant('sallyport', startSallyport, servers),
  ]
}

function entrant(name: string, start: StartTarget, servers: Servers): Contestant {
  return { name, start, servers, tools: 2 * servers.length }
}

export function further(echo: string, count: number): EchoServer[] {
  return Array.from({ length: count }, (_, index) => server(`json${index + 2}`, `${echo}/json/${index + 2}`))
}

function server(name: string, url: string): EchoServer {
  return { name, transport: 'http', url }
}
