import { z } from 'zod'
import { ServerName } from './server.ts'

/** Agents and toolsets follow the same naming as servers: they stand in addresses and in scopes. */
export const AgentName = ServerName

export const Token = z.object({
  id: z.string(),
  agent: z.string().optional().describe('The agent that speaks with it'),
  session: z.string().optional().describe('Or the session'),
  owner: z.string().optional().describe('The user behind it'),
  prefix: z.string().describe('The first characters of the token, to recognise it by'),
  createdAt: z.string(),
  createdBy: z.string().optional(),
  lastUsedAt: z.string().optional(),
  expiresAt: z.string().optional(),
  revokedAt: z.string().optional(),
})
export type Token = z.infer<typeof Token>

/** The only moment at which the token itself is shown. */
export const NewToken = Token.extend({ token: z.string() })
export type NewToken = z.infer<typeof NewToken>
