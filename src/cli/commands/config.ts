import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { toVisible } from '../../shared/visible.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, addExamples, addGlobalOptions, type Context, noInput, type Run } from './command.ts'
import { addConfigFile } from './config-edit.ts'

export function addConfig(program: Command, run: Run): void {
  const config = program.command('config').description('the configuration')
  addGlobalOptions(config)
  addExamples(config, ['sallyport config check', 'sallyport config show'])

  addCommand(config, run, {
    use: 'check [file]',
    summary: 'look for mistakes in a configuration file, without a gateway',
    options: [['--config <file>', 'the same as the argument']],
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
      if (file === undefined) throw new GatewayError('config-unreadable', 'There is no configuration file here')
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

  addCommand(config, run, {
    use: 'show',
    summary: 'the configuration that the gateway uses, with defaults',
    options: [['--agent <name>', 'instead: the servers that hold for this agent, and where each value came from']],
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
    summary: 'the servers that hold for somebody, and which scope each value came from',
    options: [
      ['--agent <name>', 'for this agent'],
      ['--user <name>', 'for this user'],
      ['--session <name>', 'for this session'],
      ['--project <name>', 'for this project'],
    ],
    examples: ['sallyport config effective', 'sallyport config effective --agent reviewer --json'],
    input: z.object({
      agent: z.string().optional(),
      user: z.string().optional(),
      session: z.string().optional(),
      project: z.string().optional(),
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
    summary: 'the JSON Schema of a configuration file, for editors',
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

/** An agent can be configured before it exists, so an unknown name is allowed. It may also be a typing mistake. */
async function noteUnknown({ terminal, request }: Context, agent: string): Promise<void> {
  const known = await request('Asking for agents', async (client) => {
    const [agents, shown] = await Promise.all([client.agents.list(), client.config.show()])
    const stated = WithAgents.safeParse(shown.config).data?.agents ?? {}
    return [...agents.items.map(({ name }) => name), ...Object.keys(stated)]
  }).catch(() => undefined)
  if (known && !known.includes(agent))
    terminal.talk(`No agent is named ${toVisible(agent)} yet: these are the settings of a new one.`)
}
