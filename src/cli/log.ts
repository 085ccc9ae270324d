import { pino } from 'pino'
import type { Log } from '../lib/log.ts'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** JSON lines on standard error. People at a terminal only see what went wrong; `SALLYPORT_LOG` says otherwise. */
export function createLog(env: NodeJS.ProcessEnv = process.env): Log {
  const wanted = env.SALLYPORT_LOG
  const usual = process.stderr.isTTY ? 'warn' : 'info'
  const level = wanted !== undefined && levels.includes(wanted) ? wanted : usual
  // Synchronous: the last lines before an exit are the ones that matter.
  return pino({ level, base: undefined }, pino.destination({ dest: 2, sync: true }))
}
