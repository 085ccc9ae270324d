import { openHttpSession } from './http-session.ts'
import { openOldSseSession } from './old-sse-session.ts'
import type { Way } from './protocol.ts'
import { openStdioSession } from './stdio-session.ts'

/** One client of the older era, as an agent would be: a connection, a session, one request after the other. */
export type Session = {
  /** Sends one request and resolves with the bytes of its answer. */
  exchange(id: number, body: string): Promise<Buffer>
  /** Opens the standing stream where the target has one. */
  listen(): Promise<void>
  close(): Promise<void>
}

export function openSession(way: Way): Promise<Session> {
  if (way.kind === 'http') return openHttpSession(way)
  if (way.kind === 'old-sse') return openOldSseSession(way)
  return openStdioSession(way)
}
