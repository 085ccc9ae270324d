import { pino } from 'pino'
import type { Log } from '../lib/log.ts'
import type { Masking } from '../masking/masking.ts'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** JSON lines on standard error. People at a terminal only see what went wrong; `SALLYPORT_LOG` says otherwise. */
export function createLog(masking: Pick<Masking, 'json' | 'text'>, env: NodeJS.ProcessEnv = process.env): Log {
  const wanted = env.SALLYPORT_LOG
  const usual = process.stderr.isTTY ? 'warn' : 'info'
  const level = wanted !== undefined && levels.includes(wanted) ? wanted : usual
  // Synchronous: the last lines before an exit are the ones that matter.
  const destination = pino.destination({ dest: 2, sync: true })
  destination.on('error', () => {}) // nobody reads it any more
  const write = (line: string) => {
    const masked = masking.json(Buffer.from(line))
    destination.write(masked ? masked.bytes.toString('utf8') : masking.text(line))
  }
  return pino({ level, base: undefined }, { write })
}
