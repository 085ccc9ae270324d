import type { Approval } from './approval.ts'
import type { Call } from './call.ts'
import type { Pin } from './pin.ts'
import type { Server } from './server.ts'

/** All events: names and payloads. */
export type EventTable = {
  'call-started': { call: Call }
  'call-waiting': { call: Call; approval: string }
  'call-ended': { call: Call }
  /** `elsewhere`: another instance on the same database requested or answered the approval and notified its own listeners. */
  'approval-requested': { approval: Approval; elsewhere?: boolean }
  'approval-answered': { approval: Approval; elsewhere?: boolean }
  'server-changed': { server: Server }
  'tools-changed': { connection: string }
  /** A secret value was masked in data of a server. `call` is missing if the data do not belong to a call. */
  'secret-found': { server: string; found: number; call?: string }
  'tool-drifted': { pin: Pin }
  /** `by` is a principal such as `user:ada`, `file` or `database`. `elsewhere`: another instance made the change. */
  'config-changed': { changed: readonly string[]; by: string; elsewhere?: boolean }
  /** Agents or sessions were added or removed, or their servers changed, so effective settings may differ. */
  'principals-changed': Record<string, never>
  'config-rejected': { file: string; problems: readonly string[] }
}
export type EventName = keyof EventTable

const names: Record<EventName, true> = {
  'call-started': true,
  'call-waiting': true,
  'call-ended': true,
  'approval-requested': true,
  'approval-answered': true,
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
