import { z } from 'zod'
import { ScopedServer } from './config.ts'
import { ServerName } from './server.ts'

/** Servers that the session adds, changes or disables, as in every scope. */
export const SessionServers = z.record(ServerName, ScopedServer)
export type SessionServers = z.infer<typeof SessionServers>

export const SessionState = z.enum(['open', 'ended', 'expired'])

/** A principal for one piece of an agent's work, with an expiry and its own selection of servers. */
export const Session = z.object({
  name: z.string(),
  owner: z
    .string()
    .optional()
    .describe('The user who owns the session. If missing, the session belongs to the administrators'),
  agent: z.string().optional().describe('The agent whose settings the session inherits'),
  project: z.string().optional().describe('The project whose settings the session inherits'),
  servers: SessionServers,
  state: SessionState,
  createdAt: z.string(),
  expiresAt: z.string(),
  endedAt: z.string().optional(),
})
export type Session = z.infer<typeof Session>

/** The answer to saving a session. */
export const SavedSession = Session.extend({
  secrets: z
    .array(z.string())
    .optional()
    .describe('Names of the secrets of this session that values of its servers were moved to'),
  warnings: z.array(z.string()).optional().describe('Problems of the saved servers'),
})
export type SavedSession = z.infer<typeof SavedSession>

/** The answer to creating a session. No other answer contains the token. */
export const NewSession = SavedSession.extend({ token: z.string() })
export type NewSession = z.infer<typeof NewSession>
