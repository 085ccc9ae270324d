import type { Command } from 'commander'
import { z } from 'zod'
import { ApprovalState, type Verdict } from '../../../contract/approval.ts'
import { GrantWish } from '../../../contract/grant.ts'
import { toRelative } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import { demandPerson } from '../../client/person.ts'
import { shorteningIds } from '../../client/short-id.ts'
import { confirm, talkPaged } from '../../terminal/confirm.ts'
import { exit } from '../../terminal/exit.ts'
import { wholeNumber } from '../../terminal/number.ts'
import { renderTable } from '../../terminal/table.ts'
import { paintRisk } from '../../terminal/words.ts'
import { addCommand, addExamples, addGlobalOptions, type Context, type OptionSpec, type Run } from '../command.ts'
import { toApprovalId } from '../ids.ts'
import { describeAnswered, describeWish, renderApproval } from './approval-view.ts'

const notes = [
  'Only a signed-in user can answer: use --as NAME. The command shows the complete approval before it sends the answer.',
  'The answer applies only to the arguments that were shown.',
]
const yesOption: OptionSpec = ['--yes', 'do not ask']

const Approve = z
  .object({
    id: z.string(),
    reason: z.string().optional(),
    for: GrantWish.shape.covers.optional(),
    same: z.array(z.string()),
    calls: wholeNumber({ min: 1, max: 10_000 }).optional(),
    minutes: wholeNumber({ min: 1, max: 43_200 }).optional(),
    yes: z.boolean().default(false),
  })
  .superRefine(({ for: covers, same, calls, minutes }, context) => {
    const problem = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    if (covers === undefined) {
      if (same.length > 0 || calls !== undefined || minutes !== undefined)
        problem('for', 'is missing: give call, shape or tool')
      return
    }
    if (calls === undefined) problem('calls', 'is missing: give the number of further calls')
    if (minutes === undefined) problem('minutes', 'is missing: give the number of minutes')
    if ((covers === 'shape') !== same.length > 0)
      problem('same', 'is required with --for shape, and not allowed otherwise')
  })
type Approve = z.infer<typeof Approve>

export function addApprovals(program: Command, run: Run): void {
  const approvals = program.command('approvals').description('list, show, watch and answer approvals')
  addGlobalOptions(approvals)
  addExamples(approvals, ['sallyport approvals watch --as kim', 'sallyport approvals list --state waiting'])

  addCommand(approvals, run, {
    use: 'list',
    summary: 'list approvals, newest first',
    options: [
      [
        '--state <state>',
        'only approvals in this state: waiting, approved, used, lapsed, denied, expired or withdrawn',
      ],
      ['--limit <number>', 'approvals per page (default 50)'],
      ['--cursor <cursor>', '`next` of the previous page'],
    ],
    examples: ['sallyport approvals list --state waiting', 'sallyport approvals list --json'],
    input: z.object({
      state: ApprovalState.optional(),
      limit: wholeNumber({ min: 1, max: 1000 }).optional(),
      cursor: z.string().optional(),
    }),
    async run({ terminal, request }, query) {
      const page = await request('Listing approvals', (client) => client.approvals.list(query))
      const now = Date.now()
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No approvals.'
        const toShort = shorteningIds(
          page.items.map(({ id }) => id),
          terminal.width,
        )
        return renderTable(
          page.items,
          [
            { title: 'id', value: (each) => toShort(each.id) },
            { title: 'requested', value: (each) => toRelative(each.requestedAt, now), drops: 3 },
            { title: 'tool', value: (each) => each.tool },
            { title: 'by', value: (each) => each.principal, shrinks: true, drops: 1 },
            {
              title: 'risk',
              value: (each) => each.risk,
              paint: (text, each) => paintRisk(terminal, each.risk)(text),
              drops: 4,
            },
            { title: 'what', value: (each) => each.title, shrinks: true, drops: 2 },
            { title: 'state', value: (each) => each.state },
          ],
          terminal.width,
        )
      })
      const open = page.items.find(({ state }) => state === 'waiting')
      if (page.next) terminal.next(`repeat with --cursor ${page.next} for older approvals`)
      else if (open) terminal.next(`sallyport approvals show ${open.id}`)
      return exit.done
    },
  })

  addCommand(approvals, run, {
    use: 'show <id>',
    summary: 'show one approval with all arguments',
    examples: ['sallyport approvals show approval_01k…', 'sallyport approvals show approval_01k… --json'],
    input: z.object({ id: z.string() }),
    async run({ terminal, request }, { id }) {
      const approval = await request('Reading the approval', async (client) =>
        client.approvals.get({ params: { id: await toApprovalId(client, id) } }),
      )
      terminal.answer(approval, () => renderApproval(approval, Date.now()))
      if (approval.state === 'waiting') terminal.next(`sallyport approvals approve ${approval.id} --as NAME`)
      return exit.done
    },
  })

  addCommand(approvals, run, {
    use: 'watch',
    summary: 'show approvals as they arrive; answer them with a key',
    options: [
      ['--retry <seconds>', 'how long to retry when the connection is lost (default 60)'],
      ['--no-bell', 'do not ring the terminal bell for a new approval'],
    ],
    notes: [
      'Without a terminal, the command prints one line for each approval and each answer, and cannot answer. With --json,',
      'each line is one JSON document.',
    ],
    examples: ['sallyport approvals watch --as kim', 'sallyport approvals watch --json'],
    input: z.object({
      retry: wholeNumber({ min: 0, max: 86_400, unit: 'seconds' }).default(60),
      bell: z.boolean().default(true),
    }),
    // Loaded only here, to keep the start of other commands fast.
    run: async (context, input) => (await import('./watch/watch.ts')).runWatch(context, input),
  })

  addCommand(approvals, run, {
    use: 'approve <id>',
    summary: 'approve a call once; with --for, also allow further calls',
    options: [
      ['--reason <text>', 'reason, stored in the audit'],
      [
        '--for <what>',
        'also allow further calls: call (same arguments), shape (some arguments the same) or tool (any arguments)',
      ],
      [
        '--same <pointer>',
        'with --for shape: argument that must stay the same, as a JSON pointer such as /repo; can be repeated',
        'many',
      ],
      ['--calls <number>', 'with --for: number of further calls'],
      ['--minutes <number>', 'with --for: minutes until the grant expires'],
      yesOption,
    ],
    notes,
    examples: [
      'sallyport approvals approve approval_01k… --as kim',
      'sallyport approvals approve approval_01k… --for tool --calls 3 --minutes 30 --as kim',
      'sallyport approvals approve approval_01k… --for shape --same /repo --calls 10 --minutes 60 --as kim',
    ],
    input: Approve,
    async run(context, input) {
      const grant = toWish(input)
      return answer(context, { id: input.id, verdict: 'approve', reason: input.reason, grant, yes: input.yes })
    },
  })

  addCommand(approvals, run, {
    use: 'deny <id>',
    summary: 'deny a call; the agent gets the reason',
    options: [['--reason <text>', 'reason, for the model that made the call'], yesOption],
    notes,
    examples: ['sallyport approvals deny approval_01k… --reason "Open a pull request instead" --as kim'],
    input: z.object({
      id: z.string(),
      reason: z.string({ error: 'is missing: give a reason for the agent' }).min(1),
      yes: z.boolean().default(false),
    }),
    run: (context, input) => answer(context, { ...input, verdict: 'deny' }),
  })
}

type Answering = {
  readonly id: string
  readonly verdict: Verdict
  readonly reason?: string | undefined
  readonly grant?: GrantWish | undefined
  readonly yes: boolean
}

async function answer({ terminal, request }: Context, { id: given, yes, ...said }: Answering): Promise<number> {
  const seen = await request('Reading the approval', async (client) => {
    await demandPerson(client)
    return client.approvals.get({ params: { id: await toApprovalId(client, given) } })
  })
  const shown = renderApproval(seen, Date.now())
  if (yes || said.verdict === 'deny') terminal.talk(shown)
  else if (!(await talkPaged(terminal, shown))) {
    terminal.talk('Not approved: the approval was not shown completely.')
    return exit.failed
  }
  if (said.grant) terminal.talk(`\nAllows ${toVisible(describeWish(seen.tool, said.grant))}.`)
  if (!yes && !(await confirm(terminal, said.verdict === 'approve' ? 'Approve this call?' : 'Deny this call?')))
    return exit.failed
  const answered = await request('Answering', (client) =>
    client.approvals.answer({ params: { id: seen.id }, body: { ...said, hash: seen.hash } }),
  )
  terminal.answer(answered, () => toVisible(describeAnswered(answered)))
  return exit.done
}

function toWish({ for: covers, same, calls, minutes }: Approve): GrantWish | undefined {
  if (covers === undefined || calls === undefined || minutes === undefined) return undefined
  return { covers, ...(same.length > 0 && { same }), budget: calls, minutes }
}
