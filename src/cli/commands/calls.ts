import type { Command } from 'commander'
import { z } from 'zod'
import { type Call, CallState } from '../../contract/call.ts'
import { toDuration, toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import type { Client } from '../client/client.ts'
import { shorteningIds } from '../client/short-id.ts'
import { toBytes } from '../terminal/bytes.ts'
import { exit } from '../terminal/exit.ts'
import { wholeNumber } from '../terminal/number.ts'
import { renderTable } from '../terminal/table.ts'
import { renderFacts } from '../terminal/words.ts'
import { paintCall, toWaited, toWorked } from './call-times.ts'
import { addCommand, addExamples, addGlobalOptions, type OptionSpec, type Run } from './command.ts'
import { toCallId } from './ids.ts'

const filterOptions: readonly OptionSpec[] = [
  ['--principal <principal>', 'only calls of this principal, such as agent:reviewer'],
  ['--tool <name>', 'only calls of this tool'],
  ['--state <state>', 'only calls in this state, such as running or denied'],
]
const filterInput = { principal: z.string().optional(), tool: z.string().optional(), state: CallState.optional() }

export function addCalls(program: Command, run: Run): void {
  const calls = program.command('calls').description('list, show and watch tool calls')
  addGlobalOptions(calls)
  addExamples(calls, ['sallyport calls list', 'sallyport calls show call_01k…'])

  addCommand(calls, run, {
    use: 'list',
    summary: 'list calls, newest first',
    options: [
      ['--limit <number>', 'calls per page (default 50)'],
      ['--cursor <cursor>', '`next` of the previous page'],
      ...filterOptions,
    ],
    examples: ['sallyport calls list --limit 20', 'sallyport calls list --state denied --json'],
    input: z.object({
      limit: wholeNumber({ min: 1, max: 1000 }).optional(),
      cursor: z.string().optional(),
      ...filterInput,
    }),
    async run({ terminal, request }, filter) {
      const page = await request('Listing calls', (client) => client.calls.list(filter))
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No calls.'
        const toShort = shorteningIds(
          page.items.map(({ id }) => id),
          terminal.width,
        )
        return renderTable(
          page.items,
          [
            { title: 'id', value: (call) => toShort(call.id) },
            { title: 'started', value: (call) => toRelative(call.startedAt, now), drops: 3 },
            { title: 'principal', value: (call) => call.principal, shrinks: true, drops: 2 },
            { title: 'tool', value: (call) => call.tool },
            { title: 'risk', value: (call) => call.risk, drops: 1 },
            {
              title: 'state',
              value: (call) => call.state,
              paint: (text, call) => paintCall(terminal, call.state)(text),
            },
            { title: 'waited', value: (call) => toDuration(toWaited(call, now)), drops: 4 },
            { title: 'worked', value: (call) => toDuration(toWorked(call)), drops: 5 },
          ],
          terminal.width,
        )
      })
      if (page.next) terminal.next(`repeat with --cursor ${page.next} for older calls`)
      return exit.done
    },
  })

  addCommand(calls, run, {
    use: 'watch',
    summary: 'print a line when a call starts, waits or ends',
    options: [...filterOptions, ['--retry <seconds>', 'how long to retry when the connection is lost (default 60)']],
    notes: ['Runs until Ctrl+C. With --json, each line is one JSON document, without the arguments of the call.'],
    examples: ['sallyport calls watch', 'sallyport calls watch --principal agent:reviewer --json'],
    input: z.object({
      ...filterInput,
      retry: wholeNumber({ min: 0, max: 86_400, unit: 'seconds' }).default(60),
    }),
    // Loaded only here, to keep the start of other commands fast.
    run: async (context, { retry, ...filter }) => (await import('./calls-watch.ts')).watchCalls(context, filter, retry),
  })

  addCommand(calls, run, {
    use: 'show <id>',
    summary: 'show one call',
    examples: ['sallyport calls show call_01k…', 'sallyport calls show call_01k… --json'],
    input: z.object({ id: z.string() }),
    async run({ terminal, request }, { id }) {
      const call = await request('Reading the call', (client) => getCall(client, id))
      terminal.answer(call, () => renderCall(call))
      terminal.next(`sallyport audit show ${call.id}`)
      return exit.done
    },
  })
}

async function getCall(client: Client, id: string): Promise<Call> {
  return client.calls.get({ params: { id: await toCallId(client, id) } })
}

function toNamed(milliseconds: number | undefined, what: string): string | undefined {
  return milliseconds === undefined ? undefined : `${toDuration(milliseconds)} ${what}`
}

export function renderCall(call: Call): string {
  const facts = renderFacts([
    ['call', call.id],
    ['tool', call.tool],
    ['server', call.server],
    ['principal', call.principal],
    ['received by', call.surface],
    ['risk', call.risk],
    ['state', call.state],
    ['decision', call.decision],
    ['error', call.error && `${call.error.code}: ${call.error.message}`],
    ['started', call.startedAt],
    ['ended', call.endedAt],
    ['waited', toNamed(toWaited(call, Date.now()), 'for approval')],
    ['result', call.cut && `${toBytes(call.cut.bytes)}, cut to ${toBytes(call.cut.given)}`],
    ['worked', toNamed(toWorked(call), 'at the server')],
  ])
  const meta = call.meta === undefined ? '' : `\n_meta\n${toIndented(call.meta)}`
  return `${facts}\narguments\n${toIndented(call.arguments)}${meta}`
}

function toIndented(value: unknown): string {
  return toVisible(JSON.stringify(value, null, 2) ?? 'none').replace(/^/gm, '  ')
}
