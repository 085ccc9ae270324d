import { z } from 'zod'
import { eventNames } from './events.ts'

/** An endpoint that events are sent to. Only administrators can set it, so private addresses are allowed. */
export const Webhook = z.strictObject({
  url: z.url().describe('Address that events are sent to in POST requests'),
  secret: z
    .string()
    .min(1)
    .describe(
      'Key for the signatures of messages: whsec_ and 24 to 64 bytes in base64. Store it as a secret and write ${NAME} here',
    ),
  events: z.array(z.enum(eventNames)).min(1).describe('Events that are sent to this endpoint'),
  enabled: z.boolean().default(true).describe('false: keep the entry, but send nothing'),
})
export type Webhook = z.infer<typeof Webhook>

/** `gone`: the endpoint answered 410 Gone. Nothing is sent to it until its entry changes. */
export const WebhookState = z.enum(['ready', 'disabled', 'gone'])
export type WebhookState = z.infer<typeof WebhookState>

/** The state of an endpoint and its deliveries. */
export const WebhookEndpoint = z.object({
  name: z.string(),
  target: z.string().describe('Address of the endpoint without path and query, which may contain a secret'),
  events: z.array(z.string()),
  state: WebhookState,
  error: z.string().optional().describe('Why nothing can be sent, for example because a secret is missing'),
  lastSuccessAt: z.string().optional(),
  lastFailure: z.object({ at: z.string(), error: z.string() }).optional(),
  waiting: z.int().describe('Number of waiting deliveries'),
  delivered: z.int().describe('Number of successful deliveries that are still in the list of deliveries'),
  failed: z.int().describe('Number of failed deliveries. They can be sent again'),
  dropped: z
    .int()
    .describe('Number of events that were dropped since the gateway started because too many deliveries were waiting'),
})
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>

export const DeliveryState = z.enum(['waiting', 'delivered', 'failed'])
export type DeliveryState = z.infer<typeof DeliveryState>

/** One message to one endpoint, with all its attempts. */
export const Delivery = z.object({
  id: z.string().describe('Id of the delivery, sent as webhook-id. All attempts have the same id'),
  endpoint: z.string(),
  type: z.string().describe('Name of the event'),
  state: DeliveryState,
  attempts: z.int(),
  createdAt: z.string(),
  nextAt: z.string().optional().describe('Time of the next attempt'),
  lastAt: z.string().optional().describe('Time of the last attempt'),
  status: z.int().optional().describe('HTTP status of the last answer'),
  error: z.string().optional().describe('Why the last attempt failed'),
  endedAt: z.string().optional(),
})
export type Delivery = z.infer<typeof Delivery>

/** The result of sending a test event to an endpoint. */
export const WebhookTrial = z.object({
  delivered: z.boolean(),
  status: z.int().optional().describe('HTTP status of the answer'),
  durationMs: z.number(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
})
export type WebhookTrial = z.infer<typeof WebhookTrial>

/** The format of the Standard Webhooks specification: `whsec_` and 24 to 64 bytes in base64. */
export function isWebhookSecret(text: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const bytes = Buffer.from(base64, 'base64')
  return bytes.length >= 24 && bytes.length <= 64 && base64.length % 4 === 0
}
