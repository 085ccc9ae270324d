import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../../contract/api/base.ts'
import type { ToolRisk } from '../../../contract/api/servers.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import { confirm } from '../../terminal/confirm.ts'
import { exit } from '../../terminal/exit.ts'
import { renderTable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { paintRisk, riskOrigins } from '../../terminal/words.ts'
import { addCommand, type Context, patience, type Run } from '../command.ts'
import { suggesting } from '../suggest.ts'
import { showChange } from './server-view.ts'

const Input = z
  .object({
    name: z.string(),
    scope: ScopeText.optional(),
    suggest: z.boolean().default(false),
    yes: z.boolean().default(false),
  })
  .refine(({ suggest, yes }) => suggest || !yes, {
    path: ['yes'],
    message: 'is only allowed together with --suggest',
  })

export function addServersRisks(servers: Command, run: Run): void {
  addCommand(servers, run, {
    use: 'risks <name>',
    summary: 'show the risk of each tool and its source; with --suggest, suggest risks',
    options: [
      ['--suggest', 'suggest risks from names and descriptions, and ask whether to save them'],
      ['--yes', 'save the suggestions without asking'],
      ['--scope <scope>', 'scope of the server, if several scopes have this name, such as agent:reviewer'],
    ],
    notes: ['Only tools without annotations get a suggestion. Nothing is saved without your confirmation or --yes.'],
    examples: ['sallyport servers risks files', 'sallyport servers risks files --suggest'],
    input: Input,
    async run(context, input) {
      const { name, scope } = input
      const page = await context.request('Reading the risks', (client) =>
        suggesting(client, name, () => client.servers.risks({ params: { name }, query: { scope } })),
      )
      if (input.suggest) return suggest(context, input, page.items)
      context.terminal.answer(page, () => renderRisks(context.terminal, page.items))
      if (page.items.some(({ suggested }) => suggested)) {
        context.terminal.next(`sallyport servers risks ${name} --suggest`)
      }
      return exit.done
    },
  })
}

async function suggest(context: Context, input: z.infer<typeof Input>, tools: readonly ToolRisk[]): Promise<number> {
  const { terminal } = context
  const { name, scope } = input
  const changes = tools.flatMap(({ tool, risk, suggested }) =>
    suggested ? [{ tool, before: risk, after: suggested.risk, because: suggested.because }] : [],
  )
  if (changes.length === 0 || !(await isWanted(terminal, input, changes))) {
    terminal.answer({ changes, saved: false }, () =>
      changes.length === 0
        ? 'No suggestions: each tool has annotations, a configured risk, or a name that matches its risk.'
        : 'Nothing was saved.',
    )
    return exit.done
  }
  const risks = Object.fromEntries(changes.map(({ tool, after }) => [tool, after]))
  const server = await context.request(
    `Saving the risks of ${toVisible(name)}`,
    (client) => client.servers.setRisks({ params: { name }, query: { scope }, body: { risks } }),
    patience.connecting,
  )
  return showChange(context, server)
}

type Change = { tool: string; before: ToolRisk['risk']; after: ToolRisk['risk']; because: string }

/** Prints the changes and asks. Without a terminal and without --yes, nothing is changed. */
async function isWanted(terminal: Terminal, { name, yes }: z.infer<typeof Input>, changes: readonly Change[]) {
  terminal.talk(renderChanges(terminal, changes))
  if (yes) return true
  if (terminal.interactive) return confirm(terminal, `Save ${countOf(changes.length, 'risk')} for ${toVisible(name)}?`)
  terminal.next(`sallyport servers risks ${name} --suggest --yes`)
  return false
}

function renderChanges(terminal: Terminal, changes: readonly Change[]): string {
  return renderTable(
    changes,
    [
      { title: 'tool', value: ({ tool }) => tool },
      { title: 'now', value: ({ before }) => before },
      { title: 'suggested', value: ({ after }) => after, paint: (text, { after }) => paintRisk(terminal, after)(text) },
      { title: 'because', value: ({ because }) => because, shrinks: true, drops: 1 },
    ],
    terminal.width,
  )
}

function renderRisks(terminal: Terminal, tools: readonly ToolRisk[]): string {
  if (tools.length === 0) return 'No tools.'
  return renderTable(
    tools,
    [
      { title: 'tool', value: ({ tool }) => tool },
      { title: 'risk', value: ({ risk }) => risk, paint: (text, { risk }) => paintRisk(terminal, risk)(text) },
      { title: 'from', value: ({ riskFrom }) => riskOrigins[riskFrom], drops: 1 },
      { title: 'suggested', value: ({ suggested }) => suggested?.risk ?? '' },
    ],
    terminal.width,
  )
}
