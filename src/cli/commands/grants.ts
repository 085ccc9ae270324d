import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { type Grant, NewGrant } from '../../contract/grant.ts'
import { toMoment, toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { demandPerson } from '../client/person.ts'
import { shorteningIds } from '../client/short-id.ts'
import { confirm } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import { wholeNumber } from '../terminal/number.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, type Run } from './command.ts'
import { toGrantId } from './ids.ts'
import { splitPair, toJson } from './tools/arguments.ts'

const notes = ['Only a person gives and revokes grants: sign in with --as NAME.']
const Conditions = NewGrant.shape.arguments.unwrap()
type Conditions = z.infer<typeof Conditions>

const Add = z
  .object({
    tools: z.string({ error: 'say which tools, such as files_write_file' }),
    principal: z.string().optional(),
    scope: z.string().optional(),
    calls: wholeNumber({ min: 1, max: 10_000, missing: 'say how many calls' }),
    minutes: wholeNumber({ min: 1, max: 525_600 }).optional(),
    until: z
      .string()
      .transform((text) => toMoment(text, Date.now()))
      .refine((moment) => moment !== undefined, 'must be a time such as 12h, 7d or 2027-01-31T12:00:00Z')
      .optional(),
    arguments: z.array(z.string()),
    reason: z.string().optional(),
  })
  .refine(({ principal, scope }) => (principal === undefined) !== (scope === undefined), {
    path: ['principal'],
    error: 'say for whom: this, such as agent:reviewer, or --scope',
  })
  .refine(({ minutes, until }) => (minutes === undefined) !== (until === undefined), {
    path: ['minutes'],
    error: 'say for how long: this, or --until',
  })

export function addGrants(program: Command, run: Run): void {
  const grants = program.command('grants').description('standing permissions with limits')
  addGlobalOptions(grants)
  addExamples(grants, [
    'sallyport grants list',
    'sallyport grants add --tools files_write_file --principal agent:reviewer --calls 10 --minutes 60 --as kim',
  ])

  addCommand(grants, run, {
    use: 'list',
    summary: 'grants with used of budget, newest first',
    options: [
      ['--principal <principal>', 'only those for this principal, such as agent:reviewer'],
      ['--limit <number>', 'grants per page (default 50)'],
      ['--cursor <cursor>', '`next` of the page before'],
    ],
    examples: ['sallyport grants list', 'sallyport grants list --principal agent:reviewer --json'],
    input: z.object({
      principal: z.string().optional(),
      limit: wholeNumber({ min: 1, max: 1000 }).optional(),
      cursor: z.string().optional(),
    }),
    async run({ terminal, request }, query) {
      const page = await request('Listing grants', (client) => client.grants.list(query))
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No grants.'
        const toShort = shorteningIds(
          page.items.map(({ id }) => id),
          terminal.width,
        )
        return renderTable(
          page.items,
          [
            { title: 'id', value: (grant) => toShort(grant.id) },
            { title: 'tools', value: toTools },
            { title: 'for', value: (grant) => grant.principal ?? grant.scope ?? '', shrinks: true, drops: 3 },
            { title: 'used', value: (grant) => `${grant.used} of ${grant.budget}` },
            { title: 'last use', value: (grant) => toRelative(grant.lastUsedAt, now) || 'never', drops: 2 },
            { title: 'state', value: (grant) => toState(grant, now) },
            { title: 'given by', value: (grant) => grant.givenBy, shrinks: true, drops: 1 },
          ],
          terminal.width,
        )
      })
      if (page.next) terminal.next(`the same with --cursor ${page.next} for older grants`)
      return exit.done
    },
  })

  addCommand(grants, run, {
    use: 'add',
    summary: 'permit so many calls until then without asking',
    options: [
      ['--tools <glob>', 'public names of tools; a dangerous one only by its exact name'],
      ['--principal <principal>', 'who may use it, such as agent:reviewer'],
      ['--scope <scope>', 'or everybody in this scope, such as project:shop'],
      ['--calls <number>', 'how many calls'],
      ['--minutes <number>', 'for how long'],
      ['--until <time>', 'or until when: 12h, 7d or a date'],
      ['--arguments <pair>', 'only with this argument: POINTER=VALUE, or POINTER:=JSON for anything but text', 'many'],
      ['--reason <text>', 'why, for the record'],
    ],
    notes: [...notes, 'After := may also stand a condition as in a rule, such as /path:={"glob":"/srv/*"}.'],
    examples: [
      'sallyport grants add --tools files_write_file --principal agent:reviewer --calls 10 --minutes 60 --as kim',
      "sallyport grants add --tools 'github_*' --scope project:shop --calls 50 --until 7d --arguments /repo=shop --as kim",
    ],
    input: Add,
    async run({ terminal, request }, { calls, minutes, until, arguments: pairs, ...wanted }) {
      const conditions = toConditions(pairs)
      const expiresAt = until ?? new Date(Date.now() + (minutes ?? 0) * 60_000).toISOString()
      const grant = await request('Giving the grant', async (client) => {
        await demandPerson(client)
        return client.grants.add({ ...wanted, ...(conditions && { arguments: conditions }), budget: calls, expiresAt })
      })
      terminal.answer(grant, () => toVisible(`${grant.id}: ${toSentence(grant)}`))
      terminal.next(`sallyport grants revoke ${grant.id} --as NAME to take it back`)
      return exit.done
    },
  })

  addCommand(grants, run, {
    use: 'revoke <id>',
    summary: 'take a grant back; once answered, no call uses it any more',
    options: [['--yes', 'do not ask']],
    notes,
    examples: ['sallyport grants revoke grant_01k… --as kim'],
    input: z.object({ id: z.string(), yes: z.boolean().default(false) }),
    async run({ terminal, request }, { id: given, yes }) {
      const id = await request('Asking the gateway', async (client) => {
        await demandPerson(client)
        return toGrantId(client, given)
      })
      if (!yes && !(await confirm(terminal, `Revoke ${toVisible(id)}?`))) return exit.failed
      const grant = await request('Revoking', (client) => client.grants.revoke({ params: { id } }))
      terminal.answer(grant, () =>
        toVisible(`Revoked ${grant.id} for ${grant.tools}: used ${grant.used} of ${grant.budget}.`),
      )
      return exit.done
    },
  })
}

function toConditions(pairs: readonly string[]): Conditions | undefined {
  if (pairs.length === 0) return undefined
  const entries = pairs.map((pair) => {
    const { key, raw, text } = splitPair(pair, '--arguments')
    return [key, raw ? toJson(text, `--arguments ${key}`) : text]
  })
  const parsed = Conditions.safeParse(Object.fromEntries(entries))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new GatewayError('request-invalid', `--arguments ${issue?.path.join(' ')}: ${issue?.message}`)
}

function toTools({ tools, arguments: conditions, exactly }: Grant): string {
  if (exactly !== undefined) return `${tools}, one exact call`
  return conditions ? `${tools} with ${Object.keys(conditions).join(', ')}` : tools
}

function toState({ revokedAt, revokedBy, expiresAt, used, budget }: Grant, now: number): string {
  if (revokedAt) return `revoked ${toRelative(revokedAt, now)}${revokedBy ? ` by ${revokedBy}` : ''}`
  if (used >= budget) return 'used up'
  return Date.parse(expiresAt) > now ? `expires ${toRelative(expiresAt, now)}` : 'expired'
}

function toSentence({ budget, tools, principal, scope, expiresAt, arguments: conditions }: Grant): string {
  const only = conditions ? `, with ${Object.keys(conditions).join(' and ')} as said` : ''
  return `${budget === 1 ? '1 call' : `${budget} calls`} of ${tools} for ${principal ?? scope ?? ''} until ${expiresAt}${only}.`
}
