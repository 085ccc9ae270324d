import type { Command } from 'commander'
import { z } from 'zod'
import { SessionServers as Servers, type SessionServers } from '../../contract/session.ts'
import { toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { confirm } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, type OptionSpec, type Run } from './command.ts'
import { Expiry } from './tokens.ts'

const choice: readonly OptionSpec[] = [
  ['--without <server>', 'turn this server off for the session; can be repeated', 'many'],
  ['--servers <json>', 'settings of servers for the session, as one JSON object'],
  ['--expires <time>', 'when the session expires: 30d, 12h or a date'],
]
const Choice = z.object({
  without: z.array(z.string()),
  servers: z
    .string()
    .transform((text, context) => {
      const parsed = Servers.safeParse(toJson(text))
      if (parsed.success) return parsed.data
      context.addIssue({ code: 'custom', message: 'must be a JSON object such as {"files":{"enabled":false}}' })
      return z.NEVER
    })
    .optional(),
  expires: Expiry.optional(),
})

export function addSessions(program: Command, run: Run): void {
  const sessions = program
    .command('sessions')
    .description('manage sessions: short-lived principals, each for one piece of work of an agent')
  addGlobalOptions(sessions)
  addExamples(sessions, ['sallyport sessions create --agent reviewer --expires 2h', 'sallyport sessions list'])

  addCommand(sessions, run, {
    use: 'list',
    summary: 'list open sessions',
    options: [['--all', 'also list ended sessions']],
    examples: ['sallyport sessions list', 'sallyport sessions list --all --json'],
    input: z.object({ all: z.boolean().default(false) }),
    async run({ terminal, request }, { all }) {
      const page = await request('Listing sessions', (client) => client.sessions.list(all ? { all: 'true' } : {}))
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No sessions.'
        return renderTable(
          page.items,
          [
            { title: 'name', value: (session) => session.name },
            { title: 'owner', value: (session) => session.owner ?? '', drops: 2 },
            { title: 'agent', value: (session) => session.agent ?? '' },
            { title: 'project', value: (session) => session.project ?? '', drops: 1 },
            { title: 'state', value: (session) => session.state },
            { title: 'ends', value: (session) => toRelative(session.endedAt ?? session.expiresAt, now) },
          ],
          terminal.width,
        )
      })
      return exit.done
    },
  })

  addCommand(sessions, run, {
    use: 'create',
    summary: 'create a session and print its token; the token is shown only once',
    options: [
      ['--name <name>', 'name of the session (default: generated)'],
      ['--agent <name>', 'agent whose settings the session inherits'],
      ['--project <name>', 'project whose settings the session inherits'],
      ['--owner <name>', 'user who owns the session'],
      ...choice,
    ],
    examples: [
      'sallyport sessions create --agent reviewer --expires 2h',
      'sallyport sessions create --project shop --without files --as kim --json',
    ],
    input: Choice.extend({
      name: z.string().optional(),
      agent: z.string().optional(),
      project: z.string().optional(),
      owner: z.string().optional(),
    }),
    async run({ terminal, request }, { without, servers, expires, ...wanted }) {
      const input = { ...wanted, servers: toServers(servers, without), expiresAt: expires }
      const session = await request('Creating the session', (client) => client.sessions.create(input))
      terminal.answer(session, () => session.token)
      terminal.talk(`The session ${toVisible(session.name)} ends ${toRelative(session.expiresAt, Date.now())}.`)
      terminal.next(`sallyport sessions end ${toVisible(session.name)}`)
      return exit.done
    },
  })

  addCommand(sessions, run, {
    use: 'update <name>',
    summary: "change a session's servers or its expiry",
    options: choice,
    examples: ['sallyport sessions update reviewer-0a1b2c3d4e --without files --expires 4h'],
    input: Choice.extend({ name: z.string() }),
    async run({ terminal, request }, { name, without, servers, expires }) {
      const body = { servers: toServers(servers, without), expiresAt: expires }
      const session = await request('Changing the session', (client) =>
        client.sessions.update({ params: { name }, body }),
      )
      terminal.answer(session, () => `${toVisible(session.name)} ends ${toRelative(session.expiresAt, Date.now())}.`)
      return exit.done
    },
  })

  addCommand(sessions, run, {
    use: 'end <name>',
    summary: 'end a session; its tokens stop working at once',
    options: [['--yes', 'do not ask']],
    examples: ['sallyport sessions end reviewer-0a1b2c3d4e', 'sallyport sessions end reviewer-0a1b2c3d4e --yes'],
    input: z.object({ name: z.string(), yes: z.boolean().default(false) }),
    async run({ terminal, request }, { name, yes }) {
      if (!yes && !(await confirm(terminal, `End ${toVisible(name)}?`))) return exit.failed
      const session = await request('Ending the session', (client) => client.sessions.end({ params: { name } }))
      terminal.answer(session, () => `Ended ${toVisible(session.name)}.`)
      return exit.done
    },
  })
}

function toServers(servers: SessionServers | undefined, without: readonly string[]): SessionServers | undefined {
  if (servers === undefined && without.length === 0) return undefined
  return { ...servers, ...Object.fromEntries(without.map((name) => [name, { enabled: false }])) }
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
