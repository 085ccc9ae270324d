import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { type Grant, NewGrant } from '../../contract/grant.ts'
import { toMoment, toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { countOf } from '../../shared/words.ts'
import { demandPerson } from '../client/person.ts'
import { shorteningIds } from '../client/short-id.ts'
import { confirm } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import { wholeNumber } from '../terminal/number.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, type Run } from './command.ts'
import { toGrantId } from './ids.ts'
import { splitPair, toJson } from './tools/arguments.ts'

const notes = ['Only a signed-in user can add and revoke grants: use --as NAME.']
const Conditions = NewGrant.shape.arguments.unwrap()
type Conditions = z.infer<typeof Conditions>

const Add = z
  .object({
    tools: z.string({ error: 'is missing: give tool names, such as files_write_file' }),
    principal: z.string().optional(),
    scope: z.string().optional(),
    calls: wholeNumber({ min: 1, max: 10_000, missing: 'is missing: give the number of calls' }),
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
    error: 'is missing: give a principal such as agent:reviewer, or --scope',
  })
  .refine(({ minutes, until }) => (minutes === undefined) !== (until === undefined), {
    path: ['minutes'],
    error: 'is missing: give a number of minutes, or --until',
  })

export function addGrants(program: Command, run: Run): void {
  const grants = program
    .command('grants')
    .description('manage grants: limited permissions to call tools without approval')
  addGlobalOptions(grants)
  addExamples(grants, [
    'sallyport grants list',
    'sallyport grants add --tools files_write_file --principal agent:reviewer --calls 10 --minutes 60 --as kim',
  ])

  addCommand(grants, run, {
    use: 'list',
    summary: 'list grants and how many of their calls are used, newest first',
    options: [
      ['--principal <principal>', 'only grants for this principal, such as agent:reviewer'],
      ['--limit <number>', 'grants per page (default 50)'],
      ['--cursor <cursor>', '`next` of the previous page'],
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
      if (page.next) terminal.next(`repeat with --cursor ${page.next} for older grants`)
      return exit.done
    },
  })

  addCommand(grants, run, {
    use: 'add',
    summary: 'allow a number of calls without approval, until a time',
    options: [
      ['--tools <glob>', 'public tool names, * matches any characters; a tool of risk danger needs its exact name'],
      ['--principal <principal>', 'principal who may use the grant, such as agent:reviewer'],
      ['--scope <scope>', 'instead of --principal: every principal in this scope, such as project:shop'],
      ['--calls <number>', 'number of calls'],
      ['--minutes <number>', 'minutes until the grant expires'],
      ['--until <time>', 'instead of --minutes: time when the grant expires, such as 12h, 7d or a date'],
      [
        '--arguments <pair>',
        'only calls with this argument: POINTER=VALUE for text, or POINTER:=JSON; can be repeated',
        'many',
      ],
      ['--reason <text>', 'reason, stored in the audit'],
    ],
    notes: [...notes, 'POINTER:= also accepts a condition as in rules, such as /path:={"glob":"/srv/*"}.'],
    examples: [
      'sallyport grants add --tools files_write_file --principal agent:reviewer --calls 10 --minutes 60 --as kim',
      "sallyport grants add --tools 'github_*' --scope project:shop --calls 50 --until 7d --arguments /repo=shop --as kim",
    ],
    input: Add,
    async run({ terminal, request }, { calls, minutes, until, arguments: pairs, ...wanted }) {
      const conditions = toConditions(pairs)
      const expiresAt = until ?? new Date(Date.now() + (minutes ?? 0) * 60_000).toISOString()
      const grant = await request('Adding the grant', async (client) => {
        await demandPerson(client)
        return client.grants.add({ ...wanted, ...(conditions && { arguments: conditions }), budget: calls, expiresAt })
      })
      terminal.answer(grant, () => toVisible(`${grant.id}: ${toSentence(grant)}`))
      terminal.next(`sallyport grants revoke ${grant.id} --as NAME revokes this grant`)
      return exit.done
    },
  })

  addCommand(grants, run, {
    use: 'revoke <id>',
    summary: 'revoke a grant; when the command has ended, no call can use the grant',
    options: [['--yes', 'do not ask']],
    notes,
    examples: ['sallyport grants revoke grant_01k… --as kim'],
    input: z.object({ id: z.string(), yes: z.boolean().default(false) }),
    async run({ terminal, request }, { id: given, yes }) {
      const id = await request('Finding the grant', async (client) => {
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
  const only = conditions ? `, only with the given ${Object.keys(conditions).join(' and ')}` : ''
  return `${countOf(budget, 'call')} of ${tools} for ${principal ?? scope ?? ''} until ${expiresAt}${only}.`
}
