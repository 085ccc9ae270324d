import type { Command } from 'commander'
import { z } from 'zod'
import { wholeNumber } from '../../terminal/number.ts'
import { addCommand, type Run } from '../command.ts'
import { logFormats } from './serve-log.ts'

export const Linger = wholeNumber({ min: 0, max: 86_400, unit: 'seconds' })

export const ServeInput = z.object({
  config: z.string().optional(),
  port: wholeNumber({ min: 0, max: 65_535 }).optional(),
  demo: z.boolean().default(false),
  linger: Linger.optional(),
  logFormat: z.enum(logFormats, `must be ${logFormats.join(' or ')}`).default('text'),
})
export type ServeInput = z.infer<typeof ServeInput>

export function addServe(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'serve',
    summary: 'run a gateway; prints `sallyport ready URL` to standard output when it is ready',
    options: [
      [
        '--config <file>',
        'configuration file (SALLYPORT_CONFIG; default: sallyport.yaml, .json or .toml in the current folder)',
      ],
      ['--port <number>', 'port to listen on, overrides the configuration; 0 chooses a free port'],
      [
        '--linger <seconds>',
        'stop when the gateway was not used for this time; uses a free port if none is configured',
      ],
      ['--log-format <format>', 'log lines on standard error: text (default) or json'],
      ['--demo', 'start with a demo server if no configuration exists'],
    ],
    examples: [
      'sallyport serve',
      'sallyport serve --config team.yaml --data /var/lib/sallyport',
      'sallyport serve --port 0',
    ],
    input: ServeInput,
    // Loaded only here, to keep the start of other commands fast.
    run: async (context, input) => (await import('./run.ts')).serve(context, input),
  })
}
