import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../contract/api/base.ts'
import { SecretHost, SecretName } from '../../contract/secret.ts'
import { toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { countOf } from '../../shared/words.ts'
import { confirm } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import { readHidden } from '../terminal/hidden-input.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type Run } from './command.ts'

const scopeOption = [
  '--scope <scope>',
  'scope of the secret: global (default), project:NAME, agent:NAME or user:NAME',
] as const

export function addSecrets(program: Command, run: Run): void {
  const secrets = program.command('secrets').description('manage secrets: encrypted values that servers use')
  addGlobalOptions(secrets)
  addExamples(secrets, ['sallyport secrets set GITHUB_TOKEN --host api.githubcopilot.com', 'sallyport secrets list'])

  addCommand(secrets, run, {
    use: 'list',
    summary: 'list names, scopes and bindings of secrets, without their values',
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
    summary: 'store a secret; replaces the old value',
    options: [
      scopeOption,
      ['--host <host>', 'bind the secret to this host: it is sent to no other host; can be repeated', 'many'],
      ['--server <name>', 'bind the secret to this server: no other server receives it; can be repeated', 'many'],
    ],
    notes: ['The value is read from standard input or from a hidden prompt. It cannot be given as an argument.'],
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
      // Sign in first: the password is the first line of standard input, and the value is the rest.
      if (settings.person) await address()
      const value = await readHidden(terminal, `Value of ${name}`, 'rest')
      const input = { params: { name }, query: { scope }, body: { value, hosts: host, servers: server } }
      const saved = await request('Storing', (client) => client.secrets.set(input))
      terminal.answer(saved, () => `Stored ${toVisible(saved.name)} in ${toVisible(saved.scope)}.`)
      if (saved.warning) terminal.talk(terminal.talkColours.yellow(saved.warning))
      terminal.next(`use \${${name}} in a header, an address or the env of a server`)
      return exit.done
    },
  })

  addCommand(secrets, run, {
    use: 'remove <name>',
    summary: 'remove a secret; servers that use it reconnect without it',
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
    summary: 'encrypt all secrets with a new key and remove the old key',
    notes: [
      'An interrupted rotation continues when the gateway starts. If SALLYPORT_KEY is set, do not use this command:',
      'set SALLYPORT_KEY_PREVIOUS to the old key and SALLYPORT_KEY to a new key, and restart the gateway.',
    ],
    examples: ['sallyport secrets rotate-key', 'sallyport secrets rotate-key --json'],
    input: noInput,
    async run({ terminal, request }) {
      const done = await request('Encrypting with a new key', (client) => client.secrets.rotateKey())
      terminal.answer(
        done,
        () => `${countOf(done.secrets, 'secret')} encrypted with version ${done.keyVersion} of the key.`,
      )
      return exit.done
    },
  })
}
