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
  method: z.string().describe('What was asked for, such as tools/call'),
  tool: z.string().describe('Public name'),
  server: z.string(),
  principal: z.string(),
  principalId: z
    .string()
    .optional()
    .describe('The id of the principal: after a removal its name can belong to another one'),
  owner: z.string().optional().describe('The user on whose behalf an agent or a session called'),
  surface: z.string().describe('Where it came in: mcp, http (REST, which the CLI uses too) or library'),
  risk: Risk,
  state: CallState,
  arguments: z.unknown(),
  meta: z.unknown().optional().describe('`_meta` that was sent with the call, masked where it holds secrets'),
  decision: z.string().optional().describe('What decided, in words'),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  late: z.boolean().optional().describe('The server answered after the call had ended'),
  resent: z
    .boolean()
    .optional()
    .describe('Sent again: the session was lost, or the answer to a reading call broke off'),
  cut: z
    .object({
      bytes: z.number().describe('Bytes of the result as it came'),
      given: z.number().describe('Bytes of what the caller got instead'),
    })
    .optional()
    .describe('The result was more than the caller could be given at once'),
  masked: z.int().optional().describe('So many secrets stood in the answer and were hidden'),
  counted: z
    .boolean()
    .optional()
    .describe('Refused like many calls before it: it is part of a count in the record and has no entry of its own'),
  startedAt: z.string(),
  endedAt: z.string().optional(),
  durationMs: z.number().optional().describe('From the start to the end, with the time that it waited for approval'),
  waitedMs: z
    .number()
    .optional()
    .describe('Milliseconds of it that the call waited for approval; absent for calls that did not ask'),
  instance: z.string(),
})
export type Call = z.infer<typeof Call>
