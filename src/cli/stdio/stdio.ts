import { GatewayError } from '../../contract/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { toVisible } from '../../shared/visible.ts'
import { checkUrl } from '../client/address.ts'
import type { Context } from '../commands/command.ts'
import type { StdioInput } from '../commands/stdio.ts'
import { exit } from '../terminal/exit.ts'
import { ignoreReaders } from '../terminal/pipes.ts'
import { waitForStop } from '../terminal/stop.ts'
import { createAgentToken } from './agent-token.ts'
import { createBridge } from './bridge.ts'
import { createHttp } from './http.ts'
import { createJoining, type Joining, joinFixed } from './joining.ts'
import { openPipe } from './pipe.ts'

/** Maximum bytes of one line: four times the default of `limits.message`, for gateways with a higher limit. */
const maxBytes = 64 * 1024 * 1024
/** Milliseconds for open requests after standard input has ended, and after a signal. */
const grace = { ended: 10_000, stopped: 1000 }

/** Runs as an MCP server on standard input and output, until the input ends or a signal arrives. */
export async function runStdio({ terminal, settings }: Context, input: StdioInput): Promise<number> {
  if (terminal.json)
    throw new GatewayError('request-invalid', '--json cannot be used with stdio: standard output contains MCP messages')
  ignoreReaders()
  const stop = waitForStop()
  const talk = (line: string) => terminal.talk(toVisible(line))
  const pipe = openPipe({
    input: process.stdin,
    output: process.stdout,
    maxBytes,
    onLine: (line) => bridge.receive(line),
    onLongLine: (line) => bridge.receiveLong(line),
  })
  const http = createHttp({ maxBytes, slowDown: pipe.slowDown })
  const joining = toJoining()
  const bridge = createBridge({ joining, http, path: toPath(input), clock: systemClock, write: pipe.write, talk })
  // Starts before the first message arrives, because clients wait for its answer.
  joining.join().catch((error: unknown) => talk(error instanceof Error ? error.message : String(error)))

  function toJoining(): Joining {
    const { url, token, folderOfUser } = settings
    if (url !== undefined) return toFixed(url, token)
    return createJoining({
      dataFolder: folderOfUser,
      config: input.config,
      lingerSeconds: input.linger,
      token,
      agentToken: createAgentToken(folderOfUser, input.agent),
      environment: process.env,
      http,
      clock: systemClock,
      talk,
    })
  }

  const hurry = new AbortController()
  const stopped = stop.then(() => void setTimeout(() => hurry.abort(), grace.stopped).unref())
  await Promise.race([pipe.ended, stopped])
  // The timer also keeps the process alive while requests are open.
  const limit = setTimeout(() => hurry.abort(), grace.ended)
  await bridge.close(hurry.signal)
  clearTimeout(limit)
  joining.close()
  http.close()
  pipe.close()
  // An open handle must not keep the process running.
  setTimeout(() => process.exit(exit.done), 500).unref()
  return exit.done
}

function toFixed(url: string, token: string | undefined): Joining {
  checkUrl(url)
  if (token !== undefined) return joinFixed(url, token)
  throw new GatewayError('token-missing', `No token for ${url}: give --token or SALLYPORT_TOKEN`)
}

function toPath({ toolset, server }: StdioInput): string {
  if (toolset !== undefined) return `/mcp/t/${toolset}`
  return server === undefined ? '/mcp' : `/mcp/s/${server}`
}
