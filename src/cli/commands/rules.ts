import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import type { JsonObject } from '../../contract/json.ts'
import { Risk } from '../../contract/risk.ts'
import { toPast } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import type { Client } from '../client/client.ts'
import { exit } from '../terminal/exit.ts'
import { wholeNumber } from '../terminal/number.ts'
import {
  addCommand,
  addExamples,
  addGlobalOptions,
  type Context,
  type OptionSpec,
  patience,
  type Run,
} from './command.ts'
import { renderReplay, renderRules, renderTest } from './rules-view.ts'
import { toArguments, toArgumentsObject } from './tools/arguments.ts'

const whoseOptions: readonly OptionSpec[] = [
  ['--agent <name>', 'for the calls of this agent'],
  ['--principal <principal>', 'for the calls of this principal, such as user:kim'],
]

const TestInput = z.object({
  tool: z.string().optional(),
  agent: z.string().optional(),
  principal: z.templateLiteral([z.enum(['user', 'agent', 'session', 'run']), ':', z.string().min(1)]).optional(),
  arg: z.array(z.string()),
  args: z.string().optional(),
  meta: z.string().optional(),
  server: z.string().optional(),
  risk: Risk.optional(),
  rules: z.string().optional(),
  replay: z.boolean().default(false),
  since: z.string().optional(),
  limit: wholeNumber({ min: 1, max: 5000 }).optional(),
  cursor: z.string().optional(),
})
type TestInput = z.infer<typeof TestInput>

export function addRules(program: Command, run: Run): void {
  const rules = program.command('rules').description('list and test the rules that allow, ask about or deny calls')
  addGlobalOptions(rules)
  addExamples(rules, ['sallyport rules list --agent reviewer', 'sallyport rules test github_merge --agent reviewer'])

  addCommand(rules, run, {
    use: 'list',
    summary: 'list rules by scope: all, or only the rules for one principal',
    options: [...whoseOptions, ['--scope <scope>', 'only rules of this scope, such as global or project:shop']],
    examples: ['sallyport rules list', 'sallyport rules list --agent reviewer --json'],
    input: TestInput.pick({ agent: true, principal: true }).extend({ scope: z.string().optional() }),
    async run({ terminal, request }, { scope, ...whose }) {
      const page = await request('Listing rules', (client) => client.rules.list(whose))
      const shown = { ...page, items: page.items.filter((each) => scope === undefined || each.scope === scope) }
      terminal.answer(shown, () => renderRules(terminal, shown.items))
      return exit.done
    },
  })

  addCommand(rules, run, {
    use: 'test [tool]',
    summary: 'show which rule decides about a call; with --replay, test rules on past calls',
    options: [
      ...whoseOptions,
      [
        '--arg <pair>',
        'argument NAME=VALUE, converted to the type in the schema, or NAME:=JSON; can be repeated',
        'many',
      ],
      ['--args <json>', 'all arguments as one JSON object'],
      ['--meta <json>', '`_meta` of the call as one JSON object'],
      ['--server <name>', 'server of the tool, for a tool that does not exist yet'],
      ['--risk <risk>', 'read, write or danger, instead of the risk of the tool'],
      ['--rules <file>', 'use the rules of this file: a configuration file, or a file with rules only'],
      ['--replay', 'test the rules on past calls, newest first; no tool is called'],
      ['--since <time>', 'with --replay: calls since this time, such as 7d, 12h or 2026-11-01'],
      ['--limit <number>', 'with --replay: number of calls to test (default 1000, at most 5000)'],
      ['--cursor <cursor>', 'with --replay: `next` of the previous answer'],
    ],
    notes: ['Without --rules, --replay compares the current rules with the decisions at the time of the calls.'],
    examples: [
      'sallyport rules test github_merge --agent reviewer --arg repo=site',
      'sallyport rules test shop_refund --server shop --risk danger',
      'sallyport rules test --replay --rules changed.yaml --since 7d',
    ],
    input: TestInput,
    async run(context, input) {
      const file = input.rules
      const rules = file === undefined ? undefined : await readRules(file)
      return input.replay ? replay(context, input, rules) : test(context, input, rules)
    },
  })
}

type RuleSet = Awaited<ReturnType<typeof readRules>>

async function readRules(file: string) {
  const { readRuleSet } = await import('../../config/config.ts')
  return readRuleSet(file)
}

async function test({ terminal, request }: Context, input: TestInput, rules: RuleSet | undefined): Promise<number> {
  const { tool, agent, principal, server, risk, arg, args, meta: metaText } = input
  if (tool === undefined)
    throw new GatewayError('request-invalid', 'The tool is missing: name a tool, or use --replay to test past calls')
  if (args !== undefined && arg.length > 0) throw new GatewayError('request-invalid', 'Give --arg or --args, not both')
  const whole = args === undefined ? undefined : toArgumentsObject(args)
  const meta = metaText === undefined ? undefined : toArgumentsObject(metaText, '--meta')
  const tested = await request(`Testing ${toVisible(tool)}`, async (client) => {
    const given = whole ?? (await readPairs(client, tool, arg))
    return client.rules.test({ tool, agent, principal, server, risk, arguments: given, meta, rules })
  })
  terminal.answer(tested, () => renderTest(terminal, tested))
  return exit.done
}

async function replay({ terminal, request }: Context, input: TestInput, rules: RuleSet | undefined): Promise<number> {
  const { tool, agent, principal, limit, cursor } = input
  const since = input.since === undefined ? undefined : toPast(input.since, Date.now())
  if (input.since !== undefined && since === undefined) {
    throw new GatewayError('request-invalid', '--since takes 7d, 12h, 90m or a date such as 2026-11-01')
  }
  const wanted = { agent, principal, rules, since, tool, limit, cursor }
  const replayed = await request('Testing past calls', (client) => client.rules.replay(wanted), patience.connecting)
  terminal.answer(replayed, () => renderReplay(terminal, replayed))
  if (replayed.next) terminal.next(`repeat with --cursor ${replayed.next} for older calls`)
  return exit.done
}

/** Converts values to the types in the schema of the tool, if the tool exists. */
async function readPairs(client: Client, name: string, pairs: readonly string[]): Promise<JsonObject> {
  if (pairs.length === 0) return {}
  const schema = await client.tools.get({ params: { name } }).then(
    (tool) => tool.inputSchema,
    () => ({}),
  )
  return toArguments(pairs, schema)
}
