import { z } from 'zod'
import { Risk } from './risk.ts'

export const callEndStates = [
  'ok',
  'tool-error',
  'failed',
  'denied',
  'expired',
  'cancelled',
  'timeout',
  'unknown',
] as const
export const CallEndState = z.enum(callEndStates)
export type CallEndState = z.infer<typeof CallEndState>

export const CallState = z.enum(['deciding', 'waiting', 'running', ...callEndStates])
export type CallState = z.infer<typeof CallState>

export const Call = z.object({
  id: z.string(),
  method: z.string().describe('MCP method of the call, such as tools/call'),
  tool: z.string().describe('Public name'),
  server: z.string(),
  principal: z.string(),
  principalId: z
    .string()
    .optional()
    .describe('The id of the principal. After a removal another principal can have the same name'),
  owner: z.string().optional().describe('The user who owns the agent or the session that made the call'),
  surface: z.string().describe('Interface that received the call: mcp, http (REST and the CLI) or library'),
  risk: Risk,
  state: CallState,
  arguments: z.unknown(),
  meta: z.unknown().optional().describe('`_meta` that was sent with the call, with secrets masked'),
  decision: z.string().optional().describe('Why the call was allowed, asked about or denied, in words'),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  late: z.boolean().optional().describe('True if the server answered after the call had ended'),
  resent: z
    .boolean()
    .optional()
    .describe(
      'True if the call was sent a second time, because the MCP session was lost or the answer to a call of risk read was incomplete',
    ),
  cut: z
    .object({
      bytes: z.number().describe('Bytes of the result of the server'),
      given: z.number().describe('Bytes of the result that the caller got'),
    })
    .optional()
    .describe('Set if the result was too large and was cut'),
  masked: z.int().optional().describe('Number of secret values that were masked in the answer'),
  counted: z
    .boolean()
    .optional()
    .describe(
      'True if this call was refused like many calls before it, so the audit record contains only a count of them and no entry for this call',
    ),
  startedAt: z.string(),
  endedAt: z.string().optional(),
  durationMs: z
    .number()
    .optional()
    .describe('Milliseconds from start to end, including the time in which the call waited for approval'),
  waitedMs: z
    .number()
    .optional()
    .describe('Milliseconds for which the call waited for approval; missing if it did not need approval'),
  instance: z.string(),
})
export type Call = z.infer<typeof Call>
