import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { toVisible } from '../../shared/visible.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, addExamples, addGlobalOptions, type Context, noInput, type Run } from './command.ts'
import { addConfigFile } from './config-edit.ts'
import { addConfigTrust } from './config-trust.ts'

export function addConfig(program: Command, run: Run): void {
  const config = program.command('config').description('check, show and edit the configuration')
  addGlobalOptions(config)
  addExamples(config, ['sallyport config check', 'sallyport config show'])

  addCommand(config, run, {
    use: 'check [file]',
    summary: 'check a configuration file; needs no running gateway',
    options: [['--config <file>', 'same as the argument']],
    examples: ['sallyport config check', 'sallyport config check staging.toml --json'],
    input: z.object({ file: z.string().optional(), config: z.string().optional() }),
    async run({ terminal, settings }, { file: named, config: option }) {
      const { findConfigFile, formatProblem, readConfig } = await import('../../config/config.ts')
      const file = findConfigFile({
        explicit: named ?? option,
        environment: process.env,
        cwd: process.cwd(),
        dataFolder: settings.dataFolder,
      })
      if (file === undefined)
        throw new GatewayError('config-unreadable', 'The current folder has no configuration file')
      const reading = await readConfig(file)
      const problems = reading.ok ? [] : reading.problems
      const notices = reading.ok ? reading.notices(Date.now()) : []
      terminal.answer({ file, valid: reading.ok, problems, notices }, () =>
        reading.ok ? terminal.colours.green(`${toVisible(file)} is valid.`) : problems.map(formatProblem).join('\n'),
      )
      for (const notice of notices) terminal.talk(terminal.talkColours.yellow(formatProblem(notice)))
      return reading.ok ? exit.done : exit.usage
    },
  })

  addConfigFile(config, run)
  addConfigTrust(config, run)

  addCommand(config, run, {
    use: 'show',
    summary: 'show the configuration that the gateway uses, including defaults',
    options: [['--agent <name>', 'show the servers of this agent instead, and the scope that set each value']],
    examples: ['sallyport config show', 'sallyport config show --agent reviewer --json'],
    input: z.object({ agent: z.string().optional() }),
    async run(context, { agent }) {
      const { terminal, request } = context
      const { stringify } = await import('yaml')
      if (agent !== undefined) {
        const effective = await request('Asking the gateway', (client) => client.config.effective({ agent }))
        await noteUnknown(context, agent)
        terminal.answer(effective, () => toVisible(stringify(effective).trimEnd()))
        return exit.done
      }
      const shown = await request('Asking the gateway', (client) => client.config.show())
      terminal.answer(shown, () => toVisible(`# ${shown.file}\n${stringify(shown.config).trimEnd()}`))
      for (const problem of shown.problems) terminal.talk(terminal.talkColours.red(toVisible(problem)))
      if (shown.problems.length > 0) terminal.next('sallyport config check')
      return exit.done
    },
  })

  addCommand(config, run, {
    use: 'effective',
    summary: 'show the servers of an agent, user, session or project, and the scope that set each value',
    options: [
      ['--agent <name>', 'for this agent'],
      ['--user <name>', 'for this user'],
      ['--session <name>', 'for this session'],
      ['--project <name>', 'for this project'],
      ['--include <parts>', 'also show: state, tools, or state,tools'],
    ],
    examples: [
      'sallyport config effective',
      'sallyport config effective --agent reviewer --json',
      'sallyport config effective --agent reviewer --include state,tools',
    ],
    input: z.object({
      agent: z.string().optional(),
      user: z.string().optional(),
      session: z.string().optional(),
      project: z.string().optional(),
      include: z.enum(['state', 'tools', 'state,tools', 'tools,state']).optional(),
    }),
    async run(context, whose) {
      const { terminal, request } = context
      const { stringify } = await import('yaml')
      const effective = await request('Asking the gateway', (client) => client.config.effective(whose))
      if (whose.agent !== undefined) await noteUnknown(context, whose.agent)
      terminal.answer(effective, () => toVisible(stringify(effective).trimEnd()))
      return exit.done
    },
  })

  addCommand(config, run, {
    use: 'schema',
    summary: 'print the JSON Schema of the configuration file, for editors',
    examples: ['sallyport config schema > sallyport.schema.json', 'sallyport config schema --json'],
    input: noInput,
    async run({ terminal }) {
      const { configSchema } = await import('../../config/config.ts')
      const schema = configSchema()
      terminal.answer(schema, () => JSON.stringify(schema, null, 2))
      return exit.done
    },
  })
}

const WithAgents = z.object({ agents: z.record(z.string(), z.unknown()) })

/** An agent can be configured before it exists, so an unknown name is only a warning. */
async function noteUnknown({ terminal, request }: Context, agent: string): Promise<void> {
  const known = await request('Asking for agents', async (client) => {
    const [agents, shown] = await Promise.all([client.agents.list(), client.config.show()])
    const stated = WithAgents.safeParse(shown.config).data?.agents ?? {}
    return [...agents.items.map(({ name }) => name), ...Object.keys(stated)]
  }).catch(() => undefined)
  if (known && !known.includes(agent))
    terminal.talk(`No agent is named ${toVisible(agent)} yet. These are the settings that a new agent would get.`)
}
