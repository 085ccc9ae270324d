import type { Log } from '../../../lib/log.ts'
import { toClockTime } from '../../../shared/time.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const logFormats = ['text', 'json'] as const
export type LogFormat = (typeof logFormats)[number]

export type Fields = Readonly<Record<string, unknown>>

/** What `serve` reports while it runs: lines with the time for people, or structured lines for programs. */
export type ServeLog = {
  /** Something that happened. `text` is for people; `message` and `fields` are the same for programs. */
  event(text: string, message: string, fields?: Fields, level?: 'info' | 'warn'): void
  /** Facts and instructions at the start, without a time, so that lines can be copied. */
  notice(text: string, message: string, fields?: Fields): void
}

type ServeLogParts = { readonly terminal: Terminal; readonly log: Log; readonly format: LogFormat }

export function createServeLog({ terminal, log, format }: ServeLogParts): ServeLog {
  if (format === 'json') {
    return {
      event: (_text, message, fields = {}, level = 'info') => log[level]({ ...fields }, message),
      notice: (_text, message, fields = {}) => log.info({ ...fields }, message),
    }
  }
  return {
    event: (text) => terminal.talk(`${terminal.talkColours.dim(toClockTime(new Date()))} ${text}`),
    notice: (text) => terminal.talk(text),
  }
}
