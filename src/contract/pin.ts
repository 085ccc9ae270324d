import { z } from 'zod'

export const PinKind = z.enum(['tool', 'prompt', 'resource', 'template', 'instructions'])
export type PinKind = z.infer<typeof PinKind>

export const PinState = z
  .enum(['accepted', 'changed', 'new', 'suspicious', 'blocked'])
  .describe(
    'accepted: the current definition is the accepted one. changed: the current definition differs from the accepted one; calls require approval. new: nobody has accepted the definition yet. suspicious: the text seems to steer the model that reads it; hidden. blocked: somebody hid it',
  )
export type PinState = z.infer<typeof PinState>

/** The accepted definition of one thing that a server offers, and the server's current definition. */
export const Pin = z.object({
  id: z.string(),
  server: z.string(),
  scope: z.string(),
  kind: PinKind,
  name: z.string().describe('The name that the server gave it, escaped'),
  tool: z.string().optional().describe('Public name, if this is a tool'),
  state: PinState,
  reason: z.string().optional().describe('Why it is suspicious'),
  accepted: z
    .object({
      hash: z.string(),
      by: z.string().describe('Who accepted the definition; `baseline` for definitions from the first connection'),
      at: z.string(),
    })
    .optional(),
  live: z
    .object({
      hash: z.string(),
      listed: z.boolean().describe('True if the server lists it now. Otherwise this is the last known definition'),
      seenAt: z.string().optional(),
    })
    .optional()
    .describe("The server's current definition"),
  inherited: z
    .object({ scope: z.string(), state: PinState })
    .optional()
    .describe(
      'The pin of an earlier scope that applies here because it is stricter. It can be changed only in that scope',
    ),
  decidedBy: z.string().optional().describe('Who accepted or blocked it'),
  decidedAt: z.string().optional(),
})
export type Pin = z.infer<typeof Pin>

export const PinDetail = Pin.extend({
  difference: z
    .string()
    .describe('Difference between the accepted and the current definition, field by field, as plain text'),
  acceptedDefinition: z.unknown().optional(),
  liveDefinition: z.unknown().optional(),
})
export type PinDetail = z.infer<typeof PinDetail>

/** A decision about a pin. The hash proves which definition the person saw, so a newer definition is not accepted by mistake. */
export const PinDecision = z.strictObject({
  id: z.string(),
  hash: z.string().describe('`live.hash` of the pin that the person saw'),
})
export type PinDecision = z.infer<typeof PinDecision>
