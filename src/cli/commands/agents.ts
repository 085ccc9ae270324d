import type { Command } from 'commander'
import { z } from 'zod'
import { toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type OptionSpec, type Run } from './command.ts'
import { runRemoval } from './removal.ts'

const settings: readonly OptionSpec[] = [
  ['--owner <name>', 'user who owns the agent'],
  ['--description <text>', 'what the agent is for'],
]
const Settings = z.object({ name: z.string(), owner: z.string().optional(), description: z.string().optional() })

export function addAgents(program: Command, run: Run): void {
  const agents = program.command('agents').description('manage agents and their owners')
  addGlobalOptions(agents)
  addExamples(agents, ['sallyport agents list', 'sallyport agents change reviewer --owner kim'])

  addCommand(agents, run, {
    use: 'list',
    summary: 'list agents with their owners',
    examples: ['sallyport agents list', 'sallyport agents list --json'],
    input: noInput,
    async run({ terminal, request }) {
      const page = await request('Listing agents', (client) => client.agents.list())
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No agents.'
        return renderTable(
          page.items,
          [
            { title: 'name', value: (agent) => agent.name },
            { title: 'owner', value: (agent) => agent.owner ?? '' },
            { title: 'tokens', value: (agent) => String(agent.tokens) },
            { title: 'added', value: (agent) => toRelative(agent.createdAt, now), drops: 1 },
            { title: 'description', value: (agent) => agent.description ?? '', shrinks: true, drops: 2 },
          ],
          terminal.width,
        )
      })
      if (page.items.length === 0) terminal.next('sallyport tokens create --agent NAME')
      return exit.done
    },
  })

  addCommand(agents, run, {
    use: 'add <name>',
    summary: 'add an agent (`tokens create` also adds a missing agent)',
    options: settings,
    examples: ['sallyport agents add reviewer --owner kim', 'sallyport agents add reviewer --as kim'],
    input: Settings,
    async run({ terminal, request }, wanted) {
      const agent = await request('Adding the agent', (client) => client.agents.add(wanted))
      terminal.answer(agent, () => `Added ${toVisible(agent.name)}.`)
      terminal.next(`sallyport tokens create --agent ${toVisible(agent.name)}`)
      return exit.done
    },
  })

  addCommand(agents, run, {
    use: 'change <name>',
    summary: "change an agent's owner or description",
    options: settings,
    examples: ['sallyport agents change reviewer --owner kim'],
    input: Settings,
    async run({ terminal, request }, { name, ...body }) {
      const agent = await request('Changing the agent', (client) => client.agents.change({ params: { name }, body }))
      terminal.answer(
        agent,
        () => `${toVisible(agent.name)} belongs to ${toVisible(agent.owner ?? 'the administrators')}.`,
      )
      return exit.done
    },
  })

  addCommand(agents, run, {
    use: 'remove <name>',
    summary: 'remove an agent with its tokens, sessions, servers, secrets and grants',
    options: [['--yes', 'do not show what is removed, and do not ask']],
    examples: ['sallyport agents remove reviewer', 'sallyport agents remove reviewer --yes'],
    input: z.object({ name: z.string(), yes: z.boolean().default(false) }),
    run: (context, { name, yes }) => runRemoval(context, { kind: 'agent', name, yes }),
  })
}
