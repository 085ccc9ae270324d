import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../../contract/errors.ts'
import type { JsonObject } from '../../../contract/json.ts'
import { nearest } from '../../../lib/text.ts'
import type { Client } from '../../client/client.ts'
import { exit } from '../../terminal/exit.ts'
import { addCommand, addExamples, addGlobalOptions, type OptionSpec, type Run } from '../command.ts'
import { renderTools } from '../servers/server-view.ts'
import { suggesting } from '../suggest.ts'
import { toArguments, toArgumentsObject } from './arguments.ts'
import { renderGuide } from './guide.ts'
import { addPins } from './pins.ts'
import { callTool } from './tool-call.ts'
import { renderTool, toShownTool } from './tool-view.ts'

const toolsetOption: OptionSpec = ['--toolset <name>', 'only the tools of this toolset, with their names there']
const serverOption: OptionSpec = ['--server <name>', 'only the tools of this server']

export function addTools(program: Command, run: Run): void {
  const tools = program.command('tools').description('list, show and call tools')
  addGlobalOptions(tools)
  addExamples(tools, ['sallyport tools list', 'sallyport tools call files_read_file --arg path=notes.txt'])

  addCommand(tools, run, {
    use: 'list',
    summary: 'list tools with their risk',
    options: [serverOption, toolsetOption],
    examples: ['sallyport tools list', 'sallyport tools list --server files --json'],
    input: z.object({ server: z.string().optional(), toolset: z.string().optional() }),
    async run({ terminal, request }, selection) {
      const page = await request('Listing tools', (client) => listTools(client, selection))
      terminal.answer(page, () => (page.items.length > 0 ? renderTools(terminal, page.items) : 'No tools.'))
      if (page.items.length === 0) terminal.next('sallyport servers list')
      return exit.done
    },
  })

  addCommand(tools, run, {
    use: 'search <words...>',
    summary: 'search tools by words in names and descriptions, best match first',
    options: [serverOption, toolsetOption],
    examples: ['sallyport tools search pull request', 'sallyport tools search file --server files'],
    input: z.object({ words: z.array(z.string()), server: z.string().optional(), toolset: z.string().optional() }),
    async run({ terminal, request }, { words, ...selection }) {
      const query = words.join(' ')
      const page = await request('Searching', (client) => listTools(client, { ...selection, query }))
      terminal.answer(page, () => (page.items.length > 0 ? renderTools(terminal, page.items) : 'Nothing found.'))
      return exit.done
    },
  })

  addCommand(tools, run, {
    use: 'show <name>',
    summary: 'show a tool with its arguments and an example call',
    examples: ['sallyport tools show files_read_file', 'sallyport tools show files_read_file --json'],
    input: z.object({ name: z.string() }),
    async run({ terminal, request }, { name }) {
      const tool = await request('Reading the tool', (client) =>
        suggesting(client, name, () => client.tools.get({ params: { name } })),
      )
      const shown = toShownTool(tool)
      terminal.answer(shown, () => renderTool(terminal, shown))
      return exit.done
    },
  })

  addCommand(tools, run, {
    use: 'guide [server]',
    summary: 'print a guide to the tools in Markdown, for a model',
    options: [toolsetOption],
    examples: ['sallyport tools guide', 'sallyport tools guide files > FILES.md'],
    input: z.object({ server: z.string().optional(), toolset: z.string().optional() }),
    async run({ terminal, request }, selection) {
      const page = await request('Listing tools', (client) => listTools(client, selection))
      const guide = renderGuide(page.items)
      terminal.answer({ guide, tools: page.items }, () => guide)
      return exit.done
    },
  })

  addCommand(tools, run, {
    use: 'call <name>',
    summary: 'call a tool; if the call requires approval, wait for it',
    options: [
      [
        '--arg <pair>',
        'argument NAME=VALUE, converted to the type in the schema, or NAME:=JSON; can be repeated',
        'many',
      ],
      ['--args <json>', 'all arguments as one JSON object; - reads it from standard input'],
      ['--full', 'print the complete result, even if the gateway cut it'],
      ['--no-wait', 'if the call requires approval, exit with code 7 instead of waiting'],
      ['--key <key>', 'idempotency key: calls with the same key run once and get the same result'],
      toolsetOption,
    ],
    examples: [
      'sallyport tools call files_read_file --arg path=notes.txt',
      `sallyport tools call files_edit_file --args '{"path":"notes.txt","edits":[]}'`,
      'echo \'{"path":"notes.txt"}\' | sallyport tools call files_read_file --args - --json',
    ],
    input: z.object({
      name: z.string(),
      arg: z.array(z.string()),
      args: z.string().optional(),
      full: z.boolean().default(false),
      wait: z.boolean().default(true),
      key: z.string().optional(),
      toolset: z.string().optional(),
    }),
    async run(context, { name, arg, args, ...wanted }) {
      const { request } = context
      if (args !== undefined && arg.length > 0)
        throw new GatewayError('request-invalid', 'Give --arg or --args, not both')
      const whole = args === undefined ? undefined : toArgumentsObject(args === '-' ? await readInput() : args)
      const given = whole ?? (await request('Reading the tool', (client) => readPairs(client, name, arg)))
      return callTool(context, { name, arguments: given, ...wanted })
    },
  })

  addPins(tools, run)
}

/** An unknown server is an error here: an empty list would look like a server without tools. */
async function listTools(client: Client, selection: { server?: string; toolset?: string; query?: string }) {
  const page = await client.tools.list(selection)
  if (page.items.length > 0 || selection.server === undefined) return page
  const { server } = selection
  const names = await client.servers.list().then(
    (servers) => servers.items.map((each) => each.name),
    () => [server], // an agent may not list servers: keep the empty answer
  )
  if (names.includes(server)) return page
  const meant = nearest(server, names)
  const suggestion = meant === undefined ? '' : `. Did you mean ${meant}?`
  throw new GatewayError(
    'server-not-found',
    `No server is named ${server}${suggestion}`,
    meant === undefined ? {} : { suggestion: meant },
  )
}

async function readPairs(client: Client, name: string, pairs: readonly string[]): Promise<JsonObject> {
  if (pairs.length === 0) return {}
  const tool = await suggesting(client, name, () => client.tools.get({ params: { name } }))
  return toArguments(pairs, tool.inputSchema)
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}
