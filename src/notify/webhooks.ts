import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Delivery, WebhookEndpoint, WebhookTrial } from '../contract/webhook.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { nearest } from '../lib/text.ts'
import type { Page } from '../storage/page.ts'
import type { Storage } from '../storage/storage.ts'
import type { DeliveryQuery } from '../storage/tables/deliveries.ts'
import type { Endpoints } from './endpoints.ts'
import { toText } from './message.ts'
import { type Sender, toStatus } from './sender.ts'
import type { Message } from './sending.ts'

/** The operations on webhooks: list, send again, test. */
export type WebhookService = {
  list(): Promise<WebhookEndpoint[]>
  deliveries(query: DeliveryQuery): Promise<Page<Delivery>>
  /** Throws `delivery-not-found`, or `request-invalid` if the delivery was delivered or cannot be sent now. */
  retry(by: Principal, id: string): Promise<Delivery>
  /** Sends one test message immediately, even if the endpoint is disabled. The message is not stored. */
  test(by: Principal, name: string, signal: AbortSignal): Promise<WebhookTrial>
}

type WebhookServiceParts = {
  readonly storage: Pick<Storage, 'deliveries' | 'audit'>
  readonly endpoints: Endpoints
  readonly sender: Sender
  send(endpoint: string, message: Message, signal: AbortSignal): Promise<number>
  mask(text: string): string
  dropped(endpoint: string): number
  readonly attemptMs: number
  readonly clock: Clock
  readonly ids: Ids
}

export function createWebhookService(parts: WebhookServiceParts): WebhookService {
  const { storage, endpoints, sender, send, mask, dropped, attemptMs, clock, ids } = parts
  const { deliveries } = storage

  return {
    async list() {
      const tally = await deliveries.tally()
      return endpoints.names().map((name) => {
        const { lastSuccessAt, lastFailure, ...counts } = tally.get(name) ?? { waiting: 0, delivered: 0, failed: 0 }
        const webhook = endpoints.find(name)
        const error = whyUnusable(name)
        return {
          name,
          target: webhook ? new URL(webhook.url).origin : '',
          events: webhook?.events ?? [],
          state: endpoints.state(name),
          ...(error !== undefined && { error }),
          ...(lastSuccessAt !== undefined && { lastSuccessAt: toIso(lastSuccessAt) }),
          ...(lastFailure && { lastFailure: { at: toIso(lastFailure.at), error: lastFailure.error } }),
          ...counts,
          dropped: dropped(name),
        }
      })
    },
    deliveries: deliveries.list,
    async retry(by, id) {
      const found = await deliveries.find(id)
      if (!found) throw new GatewayError('delivery-not-found', `No delivery has the id ${id}`)
      const problem = whyNotRetry(found)
      if (problem) throw new GatewayError('request-invalid', problem)
      const body = { action: 'delivery-retried', delivery: id, type: found.type }
      const change = { principal: toPrincipalKey(by), subject: `webhook:${found.endpoint}`, body }
      if (!(await deliveries.again(id, change)))
        throw new GatewayError('request-invalid', 'The delivery is being sent at the moment')
      sender.wake()
      return (await deliveries.find(id)) ?? found
    },
    async test(by, name, signal) {
      if (!endpoints.find(name)) throw notFound(name)
      const body = { action: 'webhook-tested' }
      await storage.audit.append({ principal: toPrincipalKey(by), subject: `webhook:${name}`, body })
      return sendTest(name, signal)
    },
  }

  function whyUnusable(name: string): string | undefined {
    try {
      endpoints.reveal(name)
      return undefined
    } catch (error) {
      return mask(toGatewayError(error).message)
    }
  }

  function whyNotRetry({ state, endpoint }: Delivery): string | undefined {
    if (state === 'delivered') return 'The delivery was already delivered'
    if (!endpoints.find(endpoint)) return `The endpoint ${endpoint} was removed from the configuration`
    const now = endpoints.state(endpoint)
    if (now === 'disabled') return `The endpoint ${endpoint} is disabled`
    return now === 'gone' ? `The endpoint ${endpoint} answered 410 Gone; change its entry first` : undefined
  }

  async function sendTest(name: string, signal: AbortSignal): Promise<WebhookTrial> {
    const message = { id: ids.next('msg'), body: toText('test', clock.now(), { endpoint: name }) }
    const limit = new AbortController()
    const cancel = clock.after(attemptMs, () => limit.abort())
    const begun = clock.monotonic()
    const durationMs = () => Math.round(clock.monotonic() - begun)
    try {
      const status = await send(name, message, AbortSignal.any([signal, limit.signal]))
      return { delivered: true, status, durationMs: durationMs() }
    } catch (thrown) {
      const failure = toGatewayError(thrown)
      const error = { code: failure.code, message: mask(failure.message) }
      const status = toStatus(failure)
      return { delivered: false, ...(status !== undefined && { status }), durationMs: durationMs(), error }
    } finally {
      cancel()
    }
  }

  function notFound(name: string): GatewayError {
    const meant = nearest(name, endpoints.names())
    const suggestion = meant === undefined ? '' : `. Did you mean ${meant}?`
    return new GatewayError('webhook-not-found', `No webhook is named ${name}${suggestion}`)
  }
}
