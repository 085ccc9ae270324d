import { z } from 'zod'
import { ServerName } from './server.ts'

/** The same syntax as for servers, because names of agents are part of URLs and of scopes. */
export const AgentName = ServerName

export const Token = z.object({
  id: z.string(),
  agent: z.string().optional().describe('The agent that uses the token'),
  session: z.string().optional().describe('The session that uses the token'),
  owner: z.string().optional().describe('The user who owns the agent or the session'),
  prefix: z.string().describe('The first characters of the token, to identify it'),
  createdAt: z.string(),
  createdBy: z.string().optional(),
  lastUsedAt: z.string().optional(),
  expiresAt: z.string().optional(),
  revokedAt: z.string().optional(),
})
export type Token = z.infer<typeof Token>

/** The answer to creating a token. No other answer contains the token. */
export const NewToken = Token.extend({ token: z.string() })
export type NewToken = z.infer<typeof NewToken>
