import { z } from 'zod'
import { onlookers, operators } from '../access.ts'
import { Delivery, DeliveryState, WebhookEndpoint, WebhookTrial } from '../webhook.ts'
import { byId, endpoint, page, paging } from './base.ts'

export const webhooks = {
  list: endpoint(onlookers)
    .route({
      method: 'GET',
      path: '/webhooks',
      tags: ['webhooks'],
      summary: 'The configured endpoints and how each is served; never a secret',
    })
    .output(page(WebhookEndpoint)),
  deliveries: endpoint(onlookers)
    .route({
      method: 'GET',
      path: '/webhooks/deliveries',
      tags: ['webhooks'],
      summary: 'Deliveries, newest first; those with the state `failed` were given up',
    })
    .input(
      z.strictObject({
        ...paging,
        state: DeliveryState.optional().describe('Only deliveries in this state'),
        endpoint: z.string().optional().describe('Only deliveries to this endpoint'),
      }),
    )
    .output(page(Delivery)),
  retry: endpoint(operators)
    .route({
      method: 'POST',
      path: '/webhooks/deliveries/{id}/retry',
      tags: ['webhooks'],
      summary: 'Send a delivery that failed once more, or one that waits at once',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(Delivery),
  test: endpoint(operators)
    .route({
      method: 'POST',
      path: '/webhooks/{name}/test',
      tags: ['webhooks'],
      summary: 'Send the event `test` now, once, and tell what came of it',
      inputStructure: 'detailed',
    })
    .input(z.object({ params: z.strictObject({ name: z.string() }) }))
    .output(WebhookTrial),
}
