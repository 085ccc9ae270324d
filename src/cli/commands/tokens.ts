import type { Command } from 'commander'
import { z } from 'zod'
import type { Token } from '../../contract/token.ts'
import { toMoment, toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { confirm } from '../terminal/confirm.ts'
import { toConnectLine } from '../terminal/connect-line.ts'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type Run } from './command.ts'
import { toTokenId } from './ids.ts'

export const Expiry = z
  .string()
  .transform((text) => toMoment(text, Date.now()))
  .refine((moment) => moment !== undefined, 'must be a time such as 30d, 12h or 2027-01-31')

export function addTokens(program: Command, run: Run): void {
  const tokens = program.command('tokens').description('manage the access tokens of agents and sessions')
  addGlobalOptions(tokens)
  addExamples(tokens, ['sallyport tokens create --agent reviewer', 'sallyport tokens list'])

  addCommand(tokens, run, {
    use: 'list',
    summary: 'list tokens without their values',
    examples: ['sallyport tokens list', 'sallyport tokens list --json'],
    input: noInput,
    async run({ terminal, request }) {
      const page = await request('Listing tokens', (client) => client.tokens.list())
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No tokens.'
        return renderTable(
          page.items,
          [
            { title: 'id', value: (token) => token.id },
            { title: 'of', value: toHolder },
            { title: 'owner', value: (token) => token.owner ?? '', drops: 2 },
            { title: 'token', value: (token) => `${token.prefix}…`, drops: 3 },
            { title: 'made', value: (token) => toRelative(token.createdAt, now), drops: 1 },
            { title: 'last used', value: (token) => toRelative(token.lastUsedAt, now) || 'never', drops: 4 },
            { title: 'state', value: (token) => toState(token, now) },
          ],
          terminal.width,
        )
      })
      if (page.items.length === 0) terminal.next('sallyport tokens create --agent NAME')
      return exit.done
    },
  })

  addCommand(tokens, run, {
    use: 'create',
    summary: 'create a token for an agent or a session; the token is shown only once',
    options: [
      ['--agent <name>', 'agent that uses the token; a missing agent is added'],
      ['--session <name>', 'instead of --agent: session that uses the token'],
      ['--owner <name>', 'owner of an agent that is added (default: the caller)'],
      ['--expires <time>', 'when the token expires: 30d, 12h or a date'],
    ],
    examples: ['sallyport tokens create --agent reviewer', 'sallyport tokens create --agent ci --expires 30d --json'],
    input: z
      .object({
        agent: z.string().optional(),
        session: z.string().optional(),
        owner: z.string().optional(),
        expires: Expiry.optional(),
      })
      .refine(({ agent, session }) => (agent === undefined) !== (session === undefined), {
        path: ['agent'],
        error: 'is missing: give the name of the agent, or --session',
      }),
    async run({ terminal, request }, { expires, ...holder }) {
      const { token, mcpUrl } = await request('Creating the token', async (client) => {
        const made = await client.tokens.create({ ...holder, expiresAt: expires })
        const status = await client.status()
        return { token: made, mcpUrl: 'url' in status ? `${status.url.replace(/\/$/, '')}/mcp` : undefined }
      })
      terminal.answer(token, () => token.token)
      terminal.talk('Only a hash of the token is stored: it cannot be shown again.')
      if (mcpUrl) terminal.next(toConnectLine(mcpUrl, token.token))
      return exit.done
    },
  })

  addCommand(tokens, run, {
    use: 'revoke <id>',
    summary: 'revoke a token; it stops working at once',
    options: [['--yes', 'do not ask']],
    examples: ['sallyport tokens revoke 7k3m9q…', 'sallyport tokens revoke 7k3m9q… --yes'],
    input: z.object({ id: z.string(), yes: z.boolean().default(false) }),
    async run({ terminal, request }, { id: given, yes }) {
      const id = await request('Finding the token', (client) => toTokenId(client, given))
      if (!yes && !(await confirm(terminal, `Revoke ${toVisible(id)}?`))) return exit.failed
      const token = await request('Revoking', (client) => client.tokens.revoke({ params: { id } }))
      terminal.answer(token, () => `Revoked the token ${toVisible(token.prefix)}… of ${toVisible(toHolder(token))}.`)
      terminal.next('sallyport tokens list')
      return exit.done
    },
  })
}

/** `reviewer`, or `session:reviewer-0a1b2c3d4e` */
function toHolder({ agent, session }: Token): string {
  return agent ?? `session:${session ?? ''}`
}

function toState(token: Token, now: number): string {
  if (token.revokedAt) return `revoked ${toRelative(token.revokedAt, now)}`
  if (!token.expiresAt) return 'valid'
  return Date.parse(token.expiresAt) > now ? `expires ${toRelative(token.expiresAt, now)}` : 'expired'
}
