import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../../contract/api/base.ts'
import type { ServerLogs } from '../../../contract/api/servers.ts'
import type { ScopeKey } from '../../../contract/scope.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import { exit } from '../../terminal/exit.ts'
import { leaveOnSignal } from '../../terminal/leave.ts'
import { addCommand, type Context, type Run } from '../command.ts'
import { suggesting } from '../suggest.ts'

const pollMs = 500
/** How long to retry while the gateway restarts. */
const mostAwayMs = 60_000

type Wanted = { readonly name: string; readonly scope?: ScopeKey | undefined }

export function addServersLogs(servers: Command, run: Run): void {
  addCommand(servers, run, {
    use: 'logs <name>',
    summary: 'print the last lines that a server wrote to standard error',
    options: [
      ['-f, --follow', 'also print new lines, until Ctrl+C; with --json, one JSON document per line'],
      ['--scope <scope>', 'scope of the server, if several scopes have this name, such as agent:reviewer'],
    ],
    examples: [
      'sallyport servers logs files',
      'sallyport servers logs files -f',
      'sallyport servers logs files --json',
    ],
    input: z.object({ name: z.string(), scope: ScopeText.optional(), follow: z.boolean().default(false) }),
    async run(context, { follow, ...wanted }) {
      if (follow) return followLogs(context, wanted)
      const { terminal } = context
      const logs = await read(context, wanted)
      if (logs.dropped > 0) terminal.talk(`${countOf(logs.dropped, 'older line')} not kept.`)
      if (logs.lines.length === 0) terminal.talk('The server wrote no lines.')
      if (terminal.json || logs.lines.length > 0) terminal.answer(logs, () => logs.lines.map(toVisible).join('\n'))
      return exit.done
    },
  })
}

async function followLogs(context: Context, wanted: Wanted): Promise<number> {
  const { terminal } = context
  const leaving = new AbortController()
  const { signal } = leaving
  const stayed = leaveOnSignal(leaving)
  let logs = await read(context, wanted, 'start')
  let seenAt = performance.now()
  try {
    while (!signal.aborted) {
      if (logs.dropped > 0) terminal.talk(`${countOf(logs.dropped, 'line')} not kept and not shown.`)
      for (const line of logs.lines) terminal.line({ line }, toVisible(line))
      logs = { ...logs, lines: [], dropped: 0 }
      await pause(pollMs, undefined, { signal }).catch(() => {})
      const next = signal.aborted ? undefined : await tryRead(logs.next)
      if (!next) continue
      logs = next
      seenAt = performance.now()
    }
  } finally {
    stayed()
  }
  return exit.done

  /** Undefined while the gateway is unreachable. */
  async function tryRead(after: string): Promise<ServerLogs | undefined> {
    const { isPassing } = await import('../../client/events.ts')
    const { toGatewayError } = await import('../../../contract/errors.ts')
    try {
      return await read(context, wanted, after)
    } catch (error) {
      if (!isPassing(toGatewayError(error)) || performance.now() - seenAt > mostAwayMs) throw error
      return undefined
    }
  }
}

/** Looks up the address each time: a restarted gateway may have another port. */
function read({ request }: Context, { name, scope }: Wanted, after?: string): Promise<ServerLogs> {
  return request('Reading the lines', (client) =>
    suggesting(client, name, () => client.servers.logs({ params: { name }, query: { scope, after } })),
  )
}
