import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { AuditKind, type AuditRemoval, type AuditReport } from '../../../contract/audit.ts'
import { toGatewayError } from '../../../contract/errors.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import { demandOwnFolder } from '../../client/data-folder.ts'
import { confirm } from '../../terminal/confirm.ts'
import { exit } from '../../terminal/exit.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { addCommand, type Context, type Run } from '../command.ts'
import { toCallId } from '../ids.ts'

const minutes = 60_000

/** `audit verify`, `confirm-clock` and `export`. */
export function addAuditProof(audit: Command, run: Run): void {
  addCommand(audit, run, {
    use: 'verify',
    summary: 'check all audit entries for changes, gaps and removals',
    options: [
      ['--file <file>', 'check this JSON Lines export instead of the audit of the gateway'],
      [
        '--anchors <file>',
        'also compare with this file of anchors, kept outside the database; can be repeated',
        'many',
      ],
    ],
    notes: [
      'Asks the running gateway. If no gateway runs, the command reads the data folder. Exit code: 0 no findings, 1 findings.',
      'Checking an export needs the key in the data folder. Without the key, only the links between entries are compared.',
    ],
    examples: [
      'sallyport audit verify',
      'sallyport audit verify --data /var/lib/sallyport --anchors /mnt/elsewhere/anchors.jsonl --json',
      'sallyport audit verify --file audit.jsonl',
    ],
    input: z.object({ file: z.string().optional(), anchors: z.array(z.string()) }),
    async run(context, { file, anchors }) {
      const report = await verify(context, file, anchors)
      context.terminal.answer(report, () => renderReport(report, context.terminal))
      return report.clean ? exit.done : exit.failed
    },
  })

  addCommand(audit, run, {
    use: 'confirm-clock',
    summary: 'confirm that the clock of the gateway is correct, so that retention continues',
    options: [['--time <time>', 'current time from another clock (default: the clock of this machine)']],
    notes: [
      'Retention is on hold after the clock jumped by more than a day; `sallyport status` shows this.',
      'The time must differ from the clock of the gateway by less than an hour. The audit records who confirmed it.',
    ],
    examples: ['sallyport audit confirm-clock', 'sallyport audit confirm-clock --time 2026-11-16T08:00:00Z'],
    input: z.object({ time: z.string().optional() }),
    async run({ terminal, request }, { time = new Date().toISOString() }) {
      if (!(await confirm(terminal, `Is the current time ${time}? Retention then removes old entries permanently`))) {
        return exit.failed
      }
      const { retention } = await request('Confirming the clock', (client) => client.audit.confirmClock({ time }))
      terminal.answer({ time, retention }, () =>
        retention ? `Confirmed. Entries are kept for ${retention.days} days.` : 'Confirmed. No retention is set.',
      )
      return exit.done
    },
  })

  addCommand(audit, run, {
    use: 'export',
    summary: 'export audit entries as JSON Lines, which can be verified, or as CSV',
    options: [
      ['--format <format>', 'jsonl or csv (default jsonl)'],
      ['--output <file>', 'write to this file instead of standard output'],
      ['--since <time>', 'only entries from this time on, such as 2026-11-16 or 2026-11-16T08:00:00Z'],
      ['--until <time>', 'only entries before this time'],
      ['--principal <principal>', 'only entries of this principal'],
      ['--tool <name>', 'only entries about this tool or changed object; * matches any characters'],
      ['--kind <kind>', 'only entries of this kind'],
      ['--call <id>', 'only entries of this call'],
    ],
    notes: ['Filters other than --since and --until leave gaps, which `audit verify` reports.'],
    examples: [
      'sallyport audit export --output audit.jsonl',
      'sallyport audit export --format csv --since 2026-11-01 --output november.csv',
    ],
    input: z.object({
      format: z.enum(['jsonl', 'csv']).optional(),
      output: z.string().optional(),
      since: z.string().optional(),
      until: z.string().optional(),
      principal: z.string().optional(),
      tool: z.string().optional(),
      kind: AuditKind.optional(),
      call: z.string().optional(),
    }),
    async run({ terminal, address, request }, { output, tool, call: given, ...filter }) {
      const call = given && (await request('Finding the call', (client) => toCallId(client, given)))
      const { download } = await import('../../client/download.ts')
      const query = new URLSearchParams()
      for (const [name, value] of Object.entries({ ...filter, call, subject: tool })) if (value) query.set(name, value)
      await download(await address(), `/audit/export?${query}`, output, 2 * minutes)
      if (output !== undefined) terminal.answer({ file: output }, () => `Written to ${toVisible(output)}`)
      return exit.done
    },
  })
}

async function verify(context: Context, file: string | undefined, anchors: readonly string[]): Promise<AuditReport> {
  const { settings, request, terminal } = context
  const signal = new AbortController().signal
  const folder = settings.dataFolder
  demandOwnFolder(settings, folder)
  if (file !== undefined) {
    const { verifyFile } = await import('../../../audit/audit.ts')
    return verifyFile(file, { folder: existsSync(folder) ? folder : undefined, anchors, signal })
  }
  if (anchors.length === 0) {
    try {
      return await request('Verifying the audit', (client) => client.audit.verify(), 60 * minutes)
    } catch (error) {
      const here = settings.url === undefined && existsSync(join(folder, 'sallyport.db'))
      if (toGatewayError(error).code !== 'unreachable' || !here) throw error
      terminal.talk(`No gateway runs: reading ${folder} directly.`)
    }
  }
  const { verifyStopped } = await import('../../../audit/audit.ts')
  return verifyStopped({ folder, anchors, signal })
}

function renderReport(report: AuditReport, terminal: Terminal): string {
  const { green, red, yellow } = terminal.colours
  const list = (lines: readonly string[]) => lines.map((line) => `  ${toVisible(line)}`).join('\n')
  const verdict = report.clean
    ? green(
        report.keyed ? 'No findings.' : 'No findings, but without the key the contents of entries are not verified.',
      )
    : red(`${countOf(report.found, 'finding')}:`)
  const findings = report.findings.map(({ message }) => red(`  ${toVisible(message)}`)).join('\n')
  const more = report.found > report.findings.length ? `  … and ${report.found - report.findings.length} more` : ''
  return [
    [verdict, findings, more].filter(Boolean).join('\n'),
    ...(report.removals.length > 0
      ? [`${yellow('Removed by retention:')}\n${list(report.removals.map(toRemovalLine))}`]
      : []),
    ...(report.notices.length > 0 ? [`${yellow('Notes:')}\n${list(report.notices)}`] : []),
    `Checked:\n${list(report.checked)}`,
    `Not checked:\n${list(report.unseen)}`,
  ].join('\n\n')
}

function toRemovalLine({ at, before, entries, days, checkpoint }: AuditRemoval): string {
  const which = entries === undefined ? 'entries' : countOf(entries, 'entry', 'entries')
  const setting = days === undefined ? '' : `, retention of ${days} days`
  return `${which} before ${before} (${at}${setting}, checkpoint ${checkpoint})`
}
