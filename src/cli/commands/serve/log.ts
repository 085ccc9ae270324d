import { pino } from 'pino'
import { isObject, parseJson } from '../../../lib/json.ts'
import type { Log } from '../../../lib/log.ts'
import type { Masking } from '../../../masking/masking.ts'
import { toClockTime } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import type { LogFormat } from './serve-log.ts'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * Writes text lines with the time, or JSON lines, to standard error. Text starts at level `warn`, because `serve` prints
 * other events itself; JSON starts at level `info`. `SALLYPORT_LOG` sets another level.
 */
export function createLog(
  masking: Pick<Masking, 'json' | 'text'>,
  format: LogFormat,
  env: NodeJS.ProcessEnv = process.env,
): Log {
  const wanted = env.SALLYPORT_LOG
  const usual = format === 'json' ? 'info' : 'warn'
  const level = wanted !== undefined && levels.includes(wanted) ? wanted : usual
  // Synchronous, so that the last lines before an exit are not lost.
  const destination = pino.destination({ dest: 2, sync: true })
  destination.on('error', () => {}) // the reader closed the pipe
  const write = (line: string) => {
    const masked = masking.json(Buffer.from(line))
    const text = masked ? masked.bytes.toString('utf8') : masking.text(line)
    destination.write(format === 'json' ? text : toReadable(text))
  }
  return pino({ level, base: undefined }, { write })
}

/** `09:05:31 warn list not refreshed (server files, code call-timeout)` */
function toReadable(line: string): string {
  const entry = parseJson(line)
  if (!isObject(entry)) return line
  const { level, time, msg, ...facts } = entry
  const name = levels[Math.round(Number(level) / 10) - 1] ?? 'info'
  const told = Object.entries(facts).map(([key, value]) => `${key} ${toText(value)}`)
  const more = told.length > 0 ? ` (${told.join(', ')})` : ''
  return `${toClockTime(new Date(Number(time)))} ${name} ${toVisible(`${toText(msg)}${more}`)}\n`
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '')
}
