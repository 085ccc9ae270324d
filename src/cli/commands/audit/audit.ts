import type { Command } from 'commander'
import { z } from 'zod'
import { type AuditEntry, AuditKind } from '../../../contract/audit.ts'
import { CallState } from '../../../contract/call.ts'
import { toDuration, toRelative } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import { shorteningIds } from '../../client/short-id.ts'
import { exit } from '../../terminal/exit.ts'
import { wholeNumber } from '../../terminal/number.ts'
import { renderTable } from '../../terminal/table.ts'
import { renderFacts } from '../../terminal/words.ts'
import { renderCall } from '../calls.ts'
import { addCommand, addExamples, addGlobalOptions, type Run } from '../command.ts'
import { toCallId, toEntryId } from '../ids.ts'
import { addAuditProof } from './audit-proof.ts'

export function addAudit(program: Command, run: Run): void {
  const audit = program
    .command('audit')
    .description('read, verify and export the append-only record of calls and changes')
  addGlobalOptions(audit)
  addExamples(audit, ['sallyport audit list', 'sallyport audit show call_01k…', 'sallyport audit verify'])

  addCommand(audit, run, {
    use: 'list',
    summary: 'list audit entries, newest first',
    options: [
      ['--limit <number>', 'entries per page (default 50)'],
      ['--cursor <cursor>', '`next` of the previous page'],
      ['--principal <principal>', 'only entries of this principal, such as agent:reviewer'],
      ['--owner <user>', 'only entries of calls on behalf of this user'],
      ['--tool <name>', 'only entries about this tool or changed object; * matches any characters'],
      ['--server <name>', 'only entries of calls to this server'],
      [
        '--kind <kind>',
        'only entries of this kind: approval, answer, intent, outcome, late-outcome, refusals, change, anchor or checkpoint',
      ],
      ['--state <state>', 'only entries of calls that ended in this state, such as denied or unknown'],
      ['--since <time>', 'only entries from this time on, such as 2026-11-16 or 2026-11-16T08:00:00Z'],
      ['--until <time>', 'only entries before this time'],
      ['--call <id>', 'only entries of this call'],
    ],
    examples: [
      'sallyport audit list --limit 20',
      'sallyport audit list --principal agent:reviewer --kind outcome --json',
      "sallyport audit list --tool 'files_*' --state denied --since 2026-11-01",
    ],
    input: z.object({
      limit: wholeNumber({ min: 1, max: 1000 }).optional(),
      cursor: z.string().optional(),
      principal: z.string().optional(),
      owner: z.string().optional(),
      tool: z.string().optional(),
      server: z.string().optional(),
      kind: AuditKind.optional(),
      state: CallState.optional(),
      since: z.string().optional(),
      until: z.string().optional(),
      call: z.string().optional(),
    }),
    async run({ terminal, request }, { tool, call: given, ...filter }) {
      const page = await request('Reading the audit', async (client) => {
        const call = given === undefined ? undefined : await toCallId(client, given)
        return client.audit.list({ ...filter, call, subject: tool })
      })
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return page.next ? 'None among the newest entries.' : 'No entries.'
        const toShort = shorteningIds([...new Set(page.items.map(({ instance }) => instance))], terminal.width)
        return renderTable(
          page.items,
          [
            { title: 'id', value: (entry) => `${toShort(entry.instance)}:${entry.sequence}` },
            { title: 'when', value: (entry) => toRelative(entry.at, now), drops: 3 },
            { title: 'kind', value: (entry) => entry.kind },
            { title: 'principal', value: (entry) => entry.principal, shrinks: true, drops: 2 },
            { title: 'subject', value: (entry) => entry.subject },
            { title: 'what', value: toSummary, shrinks: true, drops: 1 },
          ],
          terminal.width,
        )
      })
      if (page.next) terminal.next(`repeat with --cursor ${page.next} for older entries`)
      return exit.done
    },
  })

  addCommand(audit, run, {
    use: 'show <id>',
    summary: 'show one entry by its id, or all entries of a call by the id of the call',
    examples: ['sallyport audit show call_01k…', 'sallyport audit show instance_01k…:42 --json'],
    input: z.object({ id: z.string() }),
    async run({ terminal, request }, { id }) {
      const found = await request('Reading the audit', async (client) =>
        client.audit.get({ params: { id: await toEntryId(client, id) } }),
      )
      terminal.answer(found, () => {
        const parts = found.entries.map((entry) => renderEntry(entry))
        return [...(found.call ? [renderCall(found.call)] : []), ...parts].join('\n\n')
      })
      return exit.done
    },
  })

  addAuditProof(audit, run)
}

function toId(entry: AuditEntry): string {
  return `${entry.instance}:${entry.sequence}`
}

/** The most important fields; `audit show` prints all. */
function toSummary({ kind, body }: AuditEntry): string {
  if (kind === 'refusals') return `${body.count} refused: ${body.code}, from ${body.firstAt} to ${body.lastAt}`
  const took = typeof body.durationMs === 'number' ? toDuration(body.durationMs) : undefined
  const changed =
    body.change === undefined && Array.isArray(body.changed) ? `changed ${body.changed.join(', ')}` : undefined
  const facts = [body.action, body.change, changed, body.risk, body.decision, body.state, took]
  return facts.filter((fact) => typeof fact === 'string' || typeof fact === 'number').join(', ')
}

function renderEntry(entry: AuditEntry): string {
  const facts = renderFacts([
    ['entry', toId(entry)],
    ['at', entry.at],
    ['kind', entry.kind],
    ['principal', entry.principal],
    ['subject', entry.subject],
    ['call', entry.call],
    ['hash', entry.hash],
  ])
  return `${facts}\n${toVisible(JSON.stringify(entry.body, null, 2)).replace(/^/gm, '  ')}`
}
