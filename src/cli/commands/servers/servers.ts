import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../../contract/api/base.ts'
import type { ScopeKey } from '../../../contract/scope.ts'
import type { Server, ServerDetail } from '../../../contract/server.ts'
import { toRelative } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import type { Client } from '../../client/client.ts'
import { confirm } from '../../terminal/confirm.ts'
import { exit } from '../../terminal/exit.ts'
import { type Column, renderTable } from '../../terminal/table.ts'
import { paintState } from '../../terminal/words.ts'
import { addCommand, addExamples, addGlobalOptions, type OptionSpec, patience, type Run } from '../command.ts'
import { suggesting } from '../suggest.ts'
import { addServersUpgrade } from '../tools/pins.ts'
import { addServersLogs } from './logs.ts'
import { renderServer, showChange } from './server-view.ts'
import { addServersAdd, addServersValidate } from './servers-add.ts'
import { addServersEdit } from './servers-edit.ts'
import { addServersRisks } from './servers-risks.ts'
import { showingStart } from './start-progress.ts'

const scopeOption: OptionSpec = [
  '--scope <scope>',
  'scope of the server, if several scopes have this name, such as agent:reviewer',
]
const ByName = z.object({ name: z.string(), scope: ScopeText.optional() })

export function addServers(program: Command, run: Run): void {
  const servers = program.command('servers').description('manage the MCP servers that this gateway connects to')
  addGlobalOptions(servers)
  addExamples(servers, ['sallyport servers list', 'sallyport servers add docs --url https://mcp.example.com/mcp'])

  addCommand(servers, run, {
    use: 'list',
    summary: 'list servers with their states',
    options: [['--scope <scope>', 'only servers of this scope, such as project:shop or user:me']],
    examples: ['sallyport servers list', 'sallyport servers list --scope user:me --json'],
    input: z.object({ scope: ScopeText.optional() }),
    async run({ terminal, request }, { scope }) {
      const page = await request('Listing servers', (client) => client.servers.list({ scope }))
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No servers.'
        return renderTable(
          page.items,
          [
            { title: 'name', value: (server) => server.name },
            ...(page.items.some(({ title }) => title !== undefined) ? [titleColumn] : []),
            { title: 'scope', value: (server) => server.scope, drops: 3 },
            { title: 'transport', value: (server) => server.transport, drops: 2 },
            {
              title: 'state',
              value: (server) => server.state,
              paint: (text, server) => paintState(terminal, server.state)(text),
            },
            { title: 'since', value: (server) => toRelative(server.since, now), drops: 1 },
            { title: 'tools', value: ({ tools }) => String(typeof tools === 'number' ? tools : tools.length) },
            { title: 'note', value: toNote, shrinks: true },
          ],
          terminal.width,
        )
      })
      if (page.items.length === 0) terminal.next('sallyport servers add NAME --url URL')
      return exit.done
    },
  })

  addCommand(servers, run, {
    use: 'get <name>',
    summary: 'show a server with its definition, state and tools',
    options: [scopeOption],
    examples: ['sallyport servers get files', 'sallyport servers get files --scope agent:reviewer --json'],
    input: ByName,
    async run({ terminal, request }, { name, scope }) {
      const server = await request('Reading the server', (client) =>
        suggesting(client, name, () => client.servers.get({ params: { name }, query: { scope } })),
      )
      terminal.answer(server, () => renderServer(terminal, server))
      return exit.done
    },
  })

  addServersAdd(servers, run)
  addServersEdit(servers, run)
  addServersValidate(servers, run)
  addServersUpgrade(servers, run)
  addServersRisks(servers, run)

  addCommand(servers, run, {
    use: 'remove <name>',
    summary: 'remove a server',
    options: [scopeOption, ['--yes', 'do not ask']],
    examples: ['sallyport servers remove files', 'sallyport servers remove files --yes'],
    input: ByName.extend({ yes: z.boolean().default(false) }),
    async run({ terminal, request }, { name, scope, yes }) {
      if (!yes && !(await confirm(terminal, `Remove ${toVisible(name)}?`))) return exit.failed
      const removed = await request(`Removing ${toVisible(name)}`, (client) =>
        suggesting(client, name, () => client.servers.remove({ params: { name }, query: { scope } })),
      )
      terminal.answer(removed, () => `Removed ${toVisible(name)}.`)
      terminal.next('sallyport servers list')
      return exit.done
    },
  })

  addAction('enable', 'turn a server on and connect to it', (client, name, scope) =>
    client.servers.enable({ params: { name }, query: { scope } }),
  )
  addAction('disable', 'turn a server off and disconnect; its definition is kept', (client, name, scope) =>
    client.servers.disable({ params: { name }, query: { scope } }),
  )
  addAction('reconnect', 'connect again now, in any state of the server', (client, name, scope) =>
    client.servers.reconnect({ params: { name }, query: { scope } }),
  )

  addServersLogs(servers, run)

  function addAction(action: string, summary: string, act: Act): void {
    addCommand(servers, run, {
      use: `${action} <name>`,
      summary,
      options: [scopeOption],
      examples: [`sallyport servers ${action} files`, `sallyport servers ${action} files --scope agent:reviewer`],
      input: ByName,
      async run(context, { name, scope }) {
        const server = await context.request(
          `Waiting for ${toVisible(name)}`,
          (client, spinner) =>
            showingStart({ client, spinner }, { name, scope }, () =>
              suggesting(client, name, () => act(client, name, scope)),
            ),
          patience.connecting,
        )
        return showChange(context, server)
      },
    })
  }
}

const titleColumn: Column<Server> = { title: 'title', value: ({ title }) => title ?? '', shrinks: true, drops: 1 }

/** The error, with the output line of the server that names the cause, or else its last output line. */
function toNote({ error, progress }: Server): string {
  if (!error) return progress ?? ''
  const cause = error.output?.find((line) => namesCause.test(line)) ?? error.output?.at(-1)
  return cause === undefined ? error.message : `${error.message}: ${cause}`
}

const namesCause = /error|exception|cannot|could not|not found|missing|denied|invalid|required|refused/i

type Act = (client: Client, name: string, scope: ScopeKey | undefined) => Promise<ServerDetail>
