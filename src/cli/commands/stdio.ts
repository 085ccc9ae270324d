import { resolve } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { ServerName } from '../../contract/server.ts'
import { AgentName } from '../../contract/token.ts'
import { addCommand, type Run } from './command.ts'
import { Linger } from './serve/serve.ts'

export const StdioInput = z
  .object({
    config: z
      .string()
      .transform((file) => resolve(file))
      .optional(),
    agent: AgentName.default('stdio'),
    toolset: ServerName.optional(),
    server: ServerName.optional(),
    linger: Linger.default(60),
  })
  .refine(({ toolset, server }) => toolset === undefined || server === undefined, {
    path: ['toolset'],
    message: 'give either this or --server, not both',
  })
export type StdioInput = z.infer<typeof StdioInput>

export function addStdio(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'stdio',
    summary: 'the gateway as an MCP server on standard input and output, for programs that know only that',
    options: [
      ['--toolset <name>', 'offer only the tools of this toolset'],
      ['--server <name>', 'offer only this server, under its own tool names'],
      ['--agent <name>', 'the agent that its calls are recorded as (default: stdio)'],
      ['--config <file>', 'configuration file of the gateway, if one has to be started'],
      ['--linger <seconds>', 'how long a gateway started here stays after its last use (default: 60)'],
    ],
    notes: [
      'It joins the gateway that runs on the data folder (here by default always the one in your home folder), or starts',
      'one in the background. That one ends by itself when nobody has used it for the time of --linger; a gateway that',
      'somebody started with `serve` is never ended.',
    ],
    examples: [
      'sallyport stdio',
      'sallyport stdio --agent cursor --toolset support',
      'sallyport stdio --gateway https://gate.example.com --token TOKEN',
    ],
    input: StdioInput,
    // Loaded when it is needed, like the gateway itself.
    run: async (context, input) => (await import('../stdio/stdio.ts')).runStdio(context, input),
  })
}
