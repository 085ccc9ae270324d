import type { Call, CallState } from '../../contract/call.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Milliseconds that a call waited for approval; for a call that still waits, up to now. */
export function toWaited({ state, startedAt, waitedMs }: Call, now: number): number | undefined {
  return state === 'waiting' ? Math.max(0, now - Date.parse(startedAt)) : waitedMs
}

/** Milliseconds that a call ran, without the time that it waited for approval. */
export function toWorked({ durationMs, waitedMs = 0 }: Pick<Call, 'durationMs' | 'waitedMs'>): number | undefined {
  return durationMs === undefined ? undefined : Math.max(0, durationMs - waitedMs)
}

export function paintCall({ colours }: Terminal, state: CallState): (text: string) => string {
  if (state === 'ok') return colours.green
  return state === 'waiting' || state === 'running' || state === 'deciding' ? colours.yellow : colours.red
}
