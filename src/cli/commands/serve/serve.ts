import type { Command } from 'commander'
import { z } from 'zod'
import { wholeNumber } from '../../terminal/number.ts'
import { addCommand, type Run } from '../command.ts'
import { logFormats } from './serve-log.ts'

/** Seconds, of `--linger`. */
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
    summary: 'run a gateway; prints `sallyport ready URL` on standard output when it serves',
    options: [
      ['--config <file>', 'configuration file (SALLYPORT_CONFIG; default: sallyport.yaml, .json or .toml here)'],
      ['--port <number>', 'port to listen on, instead of the configured one; 0 takes a free one'],
      ['--linger <seconds>', 'end when nobody has used it for so long, on a free port if none is configured'],
      ['--log-format <format>', 'text (default), or json: one JSON document per line on standard error'],
      ['--demo', 'start with a demo server if there is no configuration yet'],
    ],
    examples: [
      'sallyport serve',
      'sallyport serve --config team.yaml --data /var/lib/sallyport',
      'sallyport serve --port 0',
    ],
    input: ServeInput,
    // Loaded when it is needed: no other command wants the gateway itself.
    run: async (context, input) => (await import('./run.ts')).serve(context, input),
  })
}
