import { z } from 'zod'
import { operators, readers } from '../access.ts'
import { Delivery, DeliveryState, WebhookEndpoint, WebhookTrial } from '../webhook.ts'
import { byId, endpoint, page, paging } from './base.ts'

export const webhooks = {
  list: endpoint(readers)
    .route({
      method: 'GET',
      path: '/webhooks',
      tags: ['webhooks'],
      summary: 'List the configured endpoints with their states, without secrets',
    })
    .output(page(WebhookEndpoint)),
  deliveries: endpoint(readers)
    .route({
      method: 'GET',
      path: '/webhooks/deliveries',
      tags: ['webhooks'],
      summary: 'List deliveries, newest first',
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
      summary: 'Retry a failed delivery, or send a waiting delivery at once',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(Delivery),
  test: endpoint(operators)
    .route({
      method: 'POST',
      path: '/webhooks/{name}/test',
      tags: ['webhooks'],
      summary: 'Send the event `test` once and return the result',
      inputStructure: 'detailed',
    })
    .input(z.object({ params: z.strictObject({ name: z.string() }) }))
    .output(WebhookTrial),
}
