import { z } from 'zod'
import { ScopedServer } from './config.ts'
import { ServerName } from './server.ts'

/** As in any scope: servers that are added, changed or switched off. */
export const SessionServers = z.record(ServerName, ScopedServer)
export type SessionServers = z.infer<typeof SessionServers>

export const SessionState = z.enum(['open', 'ended', 'expired'])

/** A short-lived principal with its own choice of servers, made for one agent's work. */
export const Session = z.object({
  name: z.string(),
  owner: z.string().optional().describe('The user behind it; without one it is the administrators'),
  agent: z.string().optional().describe('The agent whose settings it inherits'),
  project: z.string().optional().describe('The project whose settings it inherits'),
  servers: SessionServers,
  state: SessionState,
  createdAt: z.string(),
  expiresAt: z.string(),
  endedAt: z.string().optional(),
})
export type Session = z.infer<typeof Session>

/** The only moment at which the token itself is shown. */
export const NewSession = Session.extend({ token: z.string() })
export type NewSession = z.infer<typeof NewSession>
