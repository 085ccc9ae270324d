import { z } from 'zod'
import { eventNames } from './events.ts'

/** Where events are posted to. Only administrators write it, so it may stand anywhere. */
export const Webhook = z.strictObject({
  url: z.url().describe('Address that events are posted to'),
  secret: z
    .string()
    .min(1)
    .describe('What messages are signed with, best as ${NAME}: whsec_ and 24 to 64 bytes in base64'),
  events: z.array(z.enum(eventNames)).min(1).describe('The events that are sent there'),
  enabled: z.boolean().default(true).describe('false keeps the entry without sending anything'),
})
export type Webhook = z.infer<typeof Webhook>

/** `gone`: it answered so itself, and gets nothing more until its entry changes. */
export const WebhookState = z.enum(['ready', 'disabled', 'gone'])
export type WebhookState = z.infer<typeof WebhookState>

/** How an endpoint is served. */
export const WebhookEndpoint = z.object({
  name: z.string(),
  target: z.string().describe('Where it leads, without path and query, which may hold a secret'),
  events: z.array(z.string()),
  state: WebhookState,
  error: z.string().optional().describe('Why nothing can be sent, such as a missing secret'),
  lastSuccessAt: z.string().optional(),
  lastFailure: z.object({ at: z.string(), error: z.string() }).optional(),
  waiting: z.int().describe('Deliveries that are still to be made'),
  delivered: z.int().describe('Of those that are still listed'),
  failed: z.int().describe('Deliveries that were given up, and can be sent again'),
  dropped: z.int().describe('Events that this gateway could not keep since it started, because too many waited'),
})
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>

export const DeliveryState = z.enum(['waiting', 'delivered', 'failed'])
export type DeliveryState = z.infer<typeof DeliveryState>

/** One message to one endpoint, however many attempts it takes. */
export const Delivery = z.object({
  id: z.string().describe('The same in every attempt, as webhook-id'),
  endpoint: z.string(),
  type: z.string().describe('The event'),
  state: DeliveryState,
  attempts: z.int(),
  createdAt: z.string(),
  nextAt: z.string().optional().describe('When it is tried next'),
  lastAt: z.string().optional().describe('When it was tried last'),
  status: z.int().optional().describe('What the endpoint answered last'),
  error: z.string().optional().describe('Why the last attempt failed'),
  endedAt: z.string().optional(),
})
export type Delivery = z.infer<typeof Delivery>

/** What became of a message that was sent to try an endpoint. */
export const WebhookTrial = z.object({
  delivered: z.boolean(),
  status: z.int().optional().describe('What the endpoint answered'),
  durationMs: z.number(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
})
export type WebhookTrial = z.infer<typeof WebhookTrial>

/** As Standard Webhooks has it: `whsec_` and 24 to 64 bytes in base64. */
export function isWebhookSecret(text: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const bytes = Buffer.from(base64, 'base64')
  return bytes.length >= 24 && bytes.length <= 64 && base64.length % 4 === 0
}
