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
    message: 'cannot be used together with --server',
  })
export type StdioInput = z.infer<typeof StdioInput>

export function addStdio(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'stdio',
    summary: 'run as an MCP server on standard input and output, for clients that support only stdio',
    options: [
      ['--toolset <name>', 'offer only the tools of this toolset'],
      ['--server <name>', "offer only this server, with the server's own tool names"],
      ['--agent <name>', 'agent that makes the calls (default: stdio)'],
      ['--config <file>', 'configuration file, if the command starts a gateway'],
      [
        '--linger <seconds>',
        'how long a gateway started by this command keeps running after its last use (default: 60)',
      ],
    ],
    notes: [
      'Connects to the gateway of the data folder (default: .sallyport in your home folder, never in the current folder).',
      'If no gateway runs, the command starts one in the background, which ends when it was not used for --linger seconds.',
      'A gateway that was started with `serve` keeps running.',
    ],
    examples: [
      'sallyport stdio',
      'sallyport stdio --agent cursor --toolset support',
      'sallyport stdio --gateway https://gate.example.com --token TOKEN',
    ],
    input: StdioInput,
    // Loaded only here, to keep the start of other commands fast.
    run: async (context, input) => (await import('../stdio/stdio.ts')).runStdio(context, input),
  })
}
