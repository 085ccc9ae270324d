import { openHttpSession } from './http-session.ts'
import { openOldSseSession } from './old-sse-session.ts'
import type { Way } from './protocol.ts'
import { openStdioSession } from './stdio-session.ts'

/** A client of the older protocol revisions: one socket, one MCP session, one request at a time. */
export type Session = {
  /** Sends one request and resolves with the bytes of its answer. */
  exchange(id: number, body: string): Promise<Buffer>
  /** Opens the event stream, if the target has one. */
  listen(): Promise<void>
  close(): Promise<void>
}

export function openSession(way: Way): Promise<Session> {
  if (way.kind === 'http') return openHttpSession(way)
  if (way.kind === 'old-sse') return openOldSseSession(way)
  return openStdioSession(way)
}
