import type { Approval } from './approval.ts'
import type { Call } from './call.ts'
import type { Pin } from './pin.ts'
import type { Server } from './server.ts'

/** The one table of events: names and shapes. Whoever is interested subscribes. */
export type EventTable = {
  'call-started': { call: Call }
  'call-waiting': { call: Call; approval: string }
  'call-ended': { call: Call }
  /** `elsewhere`: another gateway on the same database asked it, or has its answer, and has told its own listeners. */
  'question-asked': { approval: Approval; elsewhere?: boolean }
  'question-answered': { approval: Approval; elsewhere?: boolean }
  'server-changed': { server: Server }
  'tools-changed': { connection: string }
  /** A value that should not have been there was hidden; `call` is absent for what belongs to no call. */
  'secret-found': { server: string; found: number; call?: string }
  'tool-drifted': { pin: Pin }
  /** `by` is a principal such as `user:ada`, or `file`. `elsewhere`: another gateway on the same database made the change. */
  'config-changed': { changed: readonly string[]; by: string; elsewhere?: boolean }
  /** Agents or sessions were added, removed or given other servers, so that their settings differ. */
  'principals-changed': Record<string, never>
  'config-rejected': { file: string; problems: readonly string[] }
}
export type EventName = keyof EventTable

const names: Record<EventName, true> = {
  'call-started': true,
  'call-waiting': true,
  'call-ended': true,
  'question-asked': true,
  'question-answered': true,
  'server-changed': true,
  'tools-changed': true,
  'secret-found': true,
  'tool-drifted': true,
  'config-changed': true,
  'principals-changed': true,
  'config-rejected': true,
}
export const eventNames = Object.keys(names).filter(isEventName)

export function isEventName(name: string): name is EventName {
  return Object.hasOwn(names, name)
}
