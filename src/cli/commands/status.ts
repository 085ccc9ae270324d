import type { Command } from 'commander'
import type { Status } from '../../contract/status.ts'
import { toDuration } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import { paintState, renderFacts } from '../terminal/words.ts'
import { addCommand, noInput, type Run } from './command.ts'

export function addStatus(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'status',
    summary: 'show the state of the gateway and of every server',
    examples: ['sallyport status', 'sallyport status --json', 'sallyport status --gateway https://gate.example.com'],
    input: noInput,
    async run({ terminal, request }) {
      const status = await request('Asking the gateway', (client) => client.status())
      const { green, red } = terminal.colours
      const health = status.healthy ? green('healthy') : red('not healthy')
      terminal.answer(status, () => {
        if (!('servers' in status)) return `Sallyport ${toVisible(status.version)}, ${health}`
        const facts = renderFacts([
          ['gateway', status.url],
          ['version', status.version],
          ['instance', status.instance],
          ['running for', toDuration(status.uptimeMs)],
          ['storage', `${status.storage.kind}${status.storage.healthy ? '' : ', cannot be written'}`],
          ['configuration', status.config.file],
          ['calls running', String(status.calls.running)],
          ['retention', status.retention && renderRetention(status.retention)],
          ['anchors', status.anchors.map(renderAnchors).join('; ') || 'none yet'],
        ])
        const servers = renderTable(
          status.servers,
          [
            { title: 'server', value: (server) => server.name },
            { title: 'scope', value: (server) => server.scope, drops: 1 },
            {
              title: 'state',
              value: (server) => server.state,
              paint: (text, server) => paintState(terminal, server.state)(text),
            },
            { title: 'tools', value: (server) => String(server.tools) },
            { title: 'last error', value: (server) => server.error ?? '', shrinks: true },
          ],
          terminal.width,
        )
        const restart = status.config.restart.map((key) =>
          terminal.colours.yellow(`${toVisible(key)} has changed: restart the gateway to use it.`),
        )
        const notices = status.config.notices.map((notice) => terminal.colours.yellow(toVisible(notice)))
        const waiting = status.repositories.map(({ message }) => terminal.colours.yellow(toVisible(message)))
        const problems = status.config.problems.map((problem) => red(toVisible(problem)))
        return [
          health,
          facts,
          ...(status.servers.length > 0 ? [servers] : ['No servers.']),
          ...restart,
          ...notices,
          ...waiting,
          ...problems,
        ].join('\n\n')
      })
      if (!status.healthy) terminal.next('sallyport doctor')
      return exit.done
    },
  })
}

function renderAnchors({ target, waiting, error }: Status['anchors'][number]): string {
  if (error === undefined) return target
  return `${target}: ${waiting} waiting (${error})`
}

function renderRetention({ days, held, last }: NonNullable<Status['retention']>): string {
  if (held !== undefined) return `${days} days, on hold: ${held}`
  return last ? `${days} days, ${last.entries} entries before ${last.before} removed` : `${days} days`
}
