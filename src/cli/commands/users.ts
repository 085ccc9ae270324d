import type { Command } from 'commander'
import { z } from 'zod'
import { Role } from '../../contract/principal.ts'
import type { User } from '../../contract/user.ts'
import { toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { demandPerson } from '../client/person.ts'
import { exit } from '../terminal/exit.ts'
import { readHidden } from '../terminal/hidden-input.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type Run } from './command.ts'
import { runRemoval } from './removal.ts'

const notes = ['Only a signed-in administrator can change users: use --as NAME.']

export function addUsers(program: Command, run: Run): void {
  const users = program.command('users').description('manage users: people who can sign in')
  addGlobalOptions(users)
  addExamples(users, ['sallyport users list', 'sallyport users add kim --role member --as ada'])

  addCommand(users, run, {
    use: 'list',
    summary: 'list users with their roles',
    examples: ['sallyport users list', 'sallyport users list --json'],
    input: noInput,
    async run({ terminal, request }) {
      const page = await request('Listing users', (client) => client.users.list())
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No users.'
        return renderTable(
          page.items,
          [
            { title: 'name', value: (user) => user.name },
            { title: 'role', value: (user) => user.role },
            { title: 'groups', value: (user) => user.groups.join(', '), shrinks: true, drops: 1 },
            { title: 'signed in', value: (user) => toRelative(user.signedInAt, now) || 'never' },
            { title: 'state', value: (user) => (user.disabledAt ? 'disabled' : 'active') },
          ],
          terminal.width,
        )
      })
      if (page.items.length === 0)
        terminal.next('sallyport setup-link prints a link that makes the first administrator')
      return exit.done
    },
  })

  addCommand(users, run, {
    use: 'add <name>',
    summary: 'add a user; the password is asked for or read from standard input',
    options: [
      ['--role <role>', 'administrator, member or auditor'],
      ['--group <name>', 'group that rules can name as approvers; can be repeated', 'many'],
    ],
    notes,
    examples: [
      'sallyport users add kim --role member --as ada',
      'printf "%s\\n" "$OWN" "$NEW" | sallyport users add kim --role auditor --as ada --password-stdin',
    ],
    input: z.object({ name: z.string(), role: Role.default('member'), group: z.array(z.string()) }),
    async run({ terminal, request }, { name, role, group }) {
      const user = await request('Adding the user', async (client) => {
        await demandPerson(client)
        const password = await readHidden(terminal, `Password for ${name}, at least 12 characters`, 'line')
        return client.users.add({ name, role, password, ...(group.length > 0 && { groups: group }) })
      })
      terminal.answer(user, () => `Added ${toVisible(user.name)}, ${user.role}.`)
      return exit.done
    },
  })

  addCommand(users, run, {
    use: 'change <name>',
    summary: "change a user's role or groups, or disable the user; ends the user's sign-ins",
    options: [
      ['--role <role>', 'administrator, member or auditor'],
      ['--group <name>', 'new group, replaces all current groups; can be repeated', 'many'],
      ['--disable', "disable the user: sign-in fails, and the user's agents and sessions are refused"],
      ['--enable', 'enable the user again'],
    ],
    notes,
    examples: ['sallyport users change kim --role auditor --as ada', 'sallyport users change kim --disable --as ada'],
    input: z
      .object({
        name: z.string(),
        role: Role.optional(),
        group: z.array(z.string()),
        disable: z.boolean().default(false),
        enable: z.boolean().default(false),
      })
      .refine(({ disable, enable }) => !(disable && enable), {
        path: ['enable'],
        error: 'cannot be used together with --disable',
      }),
    async run({ terminal, request }, { name, role, group, disable, enable }) {
      const body = {
        ...(role && { role }),
        ...(group.length > 0 && { groups: group }),
        ...((disable || enable) && { disabled: disable }),
      }
      const user = await request('Changing the user', (client) => client.users.change({ params: { name }, body }))
      terminal.answer(user, () => toLine(user))
      return exit.done
    },
  })

  addCommand(users, run, {
    use: 'password <name>',
    summary: "set a password; ends the user's sign-ins",
    notes: [
      'Users can set their own password and must give the current one. Administrators can set the password of any user.',
    ],
    examples: ['sallyport users password kim --as kim', 'sallyport users password kim --as ada'],
    input: z.object({ name: z.string() }),
    async run({ terminal, request, settings }, { name }) {
      const user = await request('Setting the password', async (client) => {
        await demandPerson(client)
        const own = settings.person?.name === name
        const current = own ? await readHidden(terminal, 'Current password', 'line') : undefined
        const password = await readHidden(terminal, `New password for ${name}, at least 12 characters`, 'line')
        return client.users.password({
          params: { name },
          body: { password, ...(current !== undefined && { current }) },
        })
      })
      terminal.answer(user, () => `${toVisible(user.name)} has a new password; sign-ins with the old one have ended.`)
      return exit.done
    },
  })

  addCommand(users, run, {
    use: 'remove <name>',
    summary: 'remove a user and everything that belongs to the user',
    options: [['--yes', 'do not show what is removed, and do not ask']],
    notes: [
      ...notes,
      "The user's agents, sessions, servers, secrets and grants are also removed. To keep an agent, change its owner first:",
      'sallyport agents change NAME --owner USER',
    ],
    examples: ['sallyport users remove kim --as ada', 'sallyport users remove kim --yes --as ada'],
    input: z.object({ name: z.string(), yes: z.boolean().default(false) }),
    run: (context, { name, yes }) => runRemoval(context, { kind: 'user', name, yes }),
  })
}

function toLine({ name, role, groups, disabledAt }: User): string {
  const member = groups.length > 0 ? `, in ${groups.map(toVisible).join(', ')}` : ''
  return `${toVisible(name)} is ${disabledAt ? 'disabled, ' : ''}${role}${member}.`
}
