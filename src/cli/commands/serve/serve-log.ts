import type { Log } from '../../../lib/log.ts'
import { toClockTime } from '../../../shared/time.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const logFormats = ['text', 'json'] as const
export type LogFormat = (typeof logFormats)[number]

export type Fields = Readonly<Record<string, unknown>>

/** Events of `serve`: text lines with the time, or JSON lines. */
export type ServeLog = {
  /** `text` is the text line; `message` and `fields` are the content of the JSON line. */
  event(text: string, message: string, fields?: Fields, level?: 'info' | 'warn'): void
  /** Instructions at the start. Text lines have no time, so that commands can be copied. */
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
