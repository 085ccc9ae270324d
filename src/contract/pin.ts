import { z } from 'zod'

export const PinKind = z.enum(['tool', 'prompt', 'resource', 'template', 'instructions'])
export type PinKind = z.infer<typeof PinKind>

export const PinState = z
  .enum(['accepted', 'changed', 'new', 'suspicious', 'blocked'])
  .describe(
    'accepted: what the server says is what was accepted; changed: it says something else now, and calls ask; new: nobody has accepted it yet; suspicious: its text tries to steer a model, and it is hidden; blocked: somebody hid it',
  )
export type PinState = z.infer<typeof PinState>

/** The accepted definition of one thing that a server offers, beside what the server says now. */
export const Pin = z.object({
  id: z.string(),
  server: z.string(),
  scope: z.string(),
  kind: PinKind,
  name: z.string().describe("The server's own name of it, escaped"),
  tool: z.string().optional().describe('Public name of a tool'),
  state: PinState,
  reason: z.string().optional().describe('Why it is suspicious'),
  accepted: z
    .object({
      hash: z.string(),
      by: z.string().describe('Who accepted it; `baseline` for what a server offered at first'),
      at: z.string(),
    })
    .optional(),
  live: z
    .object({
      hash: z.string(),
      listed: z.boolean().describe('The server lists it now; otherwise this was seen last'),
      seenAt: z.string().optional(),
    })
    .optional()
    .describe('What the server says now'),
  inherited: z
    .object({ scope: z.string(), state: PinState })
    .optional()
    .describe(
      'The pin of an inherited entry that decides here, because it is stricter; it is decided on in its own scope',
    ),
  decidedBy: z.string().optional().describe('Who accepted or blocked it'),
  decidedAt: z.string().optional(),
})
export type Pin = z.infer<typeof Pin>

export const PinDetail = Pin.extend({
  difference: z.string().describe('From the accepted definition to the live one, field by field, as plain text'),
  acceptedDefinition: z.unknown().optional(),
  liveDefinition: z.unknown().optional(),
})
export type PinDetail = z.infer<typeof PinDetail>

/** A decision names what was looked at, so that nobody accepts what changed meanwhile. */
export const PinDecision = z.strictObject({ id: z.string(), hash: z.string().describe('`live.hash` as it was shown') })
export type PinDecision = z.infer<typeof PinDecision>
