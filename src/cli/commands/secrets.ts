import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../contract/api/base.ts'
import { SecretHost, SecretName } from '../../contract/secret.ts'
import { toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { confirm } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import { readHidden } from '../terminal/hidden-input.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type Run } from './command.ts'

const scopeOption = [
  '--scope <scope>',
  'where it counts: global (the default), project:NAME, agent:NAME, user:NAME',
] as const

export function addSecrets(program: Command, run: Run): void {
  const secrets = program.command('secrets').description('values that servers need and nobody gets to see')
  addGlobalOptions(secrets)
  addExamples(secrets, ['sallyport secrets set GITHUB_TOKEN --host api.githubcopilot.com', 'sallyport secrets list'])

  addCommand(secrets, run, {
    use: 'list',
    summary: 'names, scopes and bindings; never a value',
    examples: ['sallyport secrets list', 'sallyport secrets list --json'],
    input: noInput,
    async run({ terminal, request }) {
      const page = await request('Listing secrets', (client) => client.secrets.list())
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No secrets.'
        return renderTable(
          page.items,
          [
            { title: 'name', value: (secret) => secret.name },
            { title: 'scope', value: (secret) => secret.scope },
            { title: 'only for', value: ({ hosts, servers }) => [...hosts, ...servers].join(', ') || 'any server' },
            { title: 'hidden', value: (secret) => (secret.masked ? 'yes' : 'no, too short'), drops: 3 },
            {
              title: 'set',
              value: (secret) => `${toRelative(secret.updatedAt, now)} by ${secret.updatedBy}`,
              drops: 2,
            },
            { title: 'last used', value: (secret) => toRelative(secret.lastUsedAt, now) || 'never', drops: 1 },
          ],
          terminal.width,
        )
      })
      if (page.items.length === 0) terminal.next('sallyport secrets set NAME')
      return exit.done
    },
  })

  addCommand(secrets, run, {
    use: 'set <name>',
    summary: 'store a value under a name, in place of the one before',
    options: [
      scopeOption,
      ['--host <host>', 'a host that it may be sent to, and no other; may stand several times', 'many'],
      ['--server <name>', 'a server that it may be handed to, and no other; may stand several times', 'many'],
    ],
    notes: ['The value is read from standard input, or asked for without showing it. It is never an argument.'],
    examples: [
      'sallyport secrets set GITHUB_TOKEN --host api.githubcopilot.com',
      'sallyport secrets set GITHUB_TOKEN --json < token.txt',
    ],
    input: z.object({
      name: SecretName,
      scope: ScopeText.optional(),
      host: z.array(SecretHost).optional(),
      server: z.array(z.string().min(1)).optional(),
    }),
    async run({ terminal, request, settings, address }, { name, scope, host, server }) {
      // The password comes first on standard input, because the value is all the rest.
      if (settings.person) await address()
      const value = await readHidden(terminal, `Value of ${name}`, 'rest')
      const input = { params: { name }, query: { scope }, body: { value, hosts: host, servers: server } }
      const saved = await request('Storing', (client) => client.secrets.set(input))
      terminal.answer(saved, () => `Stored ${toVisible(saved.name)} in ${toVisible(saved.scope)}.`)
      if (saved.warning) terminal.talk(terminal.talkColours.yellow(saved.warning))
      terminal.next(`write \${${name}} into a header, an address or the env of a server`)
      return exit.done
    },
  })

  addCommand(secrets, run, {
    use: 'remove <name>',
    summary: 'forget a secret; servers that use it are connected anew, without it',
    options: [scopeOption, ['--yes', 'do not ask']],
    examples: ['sallyport secrets remove GITHUB_TOKEN', 'sallyport secrets remove TOKEN --scope agent:reviewer --yes'],
    input: z.object({ name: SecretName, scope: ScopeText.optional(), yes: z.boolean().default(false) }),
    async run({ terminal, request }, { name, scope, yes }) {
      if (!yes && !(await confirm(terminal, `Remove ${name}?`))) return exit.failed
      const removed = await request('Removing', (client) =>
        client.secrets.remove({ params: { name }, query: { scope } }),
      )
      terminal.answer(removed, () => `Removed ${toVisible(removed.name)} from ${toVisible(removed.scope)}.`)
      return exit.done
    },
  })

  addCommand(secrets, run, {
    use: 'rotate-key',
    summary: 'encrypt every secret under a new key and forget the old one',
    notes: [
      'A rotation that is interrupted goes on at the next start. Where the key comes by SALLYPORT_KEY, set',
      'SALLYPORT_KEY_PREVIOUS to it and SALLYPORT_KEY to a new one, and start the gateway anew.',
    ],
    examples: ['sallyport secrets rotate-key', 'sallyport secrets rotate-key --json'],
    input: noInput,
    async run({ terminal, request }) {
      const done = await request('Encrypting anew', (client) => client.secrets.rotateKey())
      terminal.answer(done, () => `${done.secrets} secrets are encrypted under version ${done.keyVersion} of the key.`)
      return exit.done
    },
  })
}
