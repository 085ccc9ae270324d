import type { ConfigStore } from '../config/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Masking } from '../masking/masking.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Storage } from '../storage/storage.ts'
import type { DeliveryBounds } from '../storage/tables/deliveries.ts'
import { createEndpoints } from './endpoints.ts'
import { createIntake } from './intake.ts'
import { type ReceivedEvent, toBody, toMessageId } from './message.ts'
import { createSender, type SenderSettings } from './sender.ts'
import { type Message, type Post, sendSigned } from './sending.ts'
import { createWebhookService, type WebhookService } from './webhooks.ts'

export { createEventLog, type EventLog, type LoggedEvent } from './event-log.ts'
export type { WebhookService } from './webhooks.ts'

export type NotifySettings = SenderSettings & {
  /** The most events that wait in memory to be stored. */
  readonly mostIncoming: number
  readonly sweepEvery: number
  readonly bounds: DeliveryBounds
}

export type NotifyParts = {
  readonly events: Emitter<EventTable>
  readonly config: Pick<ConfigStore, 'current'>
  readonly secrets: Pick<Secrets, 'resolve'>
  readonly masking: Pick<Masking, 'hide' | 'text' | 'value'>
  readonly storage: Pick<Storage, 'deliveries' | 'audit' | 'memory'>
  readonly post: Post
  readonly settings?: Partial<NotifySettings> | undefined
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** Sends events to webhooks. Each message is stored, signed and sent. After a failure it is sent again, until it is delivered or the last attempt has failed. */
export type Notify = {
  readonly webhooks: WebhookService & {
    /** The gateway's address for links to approval pages, if `listen.publicUrl` is not set. */
    servedAt(url: string): void
  }
  close(): Promise<void>
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const usual: NotifySettings = {
  pauses: [5000, 30_000, 2 * minute, 10 * minute, hour, 4 * hour, 10 * hour],
  attemptMs: 15_000,
  lookEvery: 5000,
  perEndpoint: 4,
  mostIncoming: 1000,
  sweepEvery: minute,
  bounds: {
    waiting: 2000,
    delivered: { count: 1000, milliseconds: day },
    failed: { count: 2000, milliseconds: 30 * day },
  },
}

export function createNotify(parts: NotifyParts): Notify {
  const { events, config, masking, storage, post, clock, ids, log } = parts
  const settings = { ...usual, ...parts.settings }
  const { deliveries, memory } = storage
  const endpoints = createEndpoints({ ...parts, memory })
  const dropped = new Map<string, number>()
  let ownUrl: string | undefined
  let unswept = 0
  let sweeping: Promise<void> | undefined
  let reading: Promise<void> = Promise.resolve()
  let cancelSweep = () => {}
  let closed = false

  const send = (endpoint: string, message: Message, signal: AbortSignal) =>
    sendSigned({ post, clock }, endpoints.reveal(endpoint), message, signal)
  const sender = createSender({ deliveries, endpoints, send, mask: masking.text, settings, clock, log })
  const intake = createIntake({
    events,
    subscribed: endpoints.subscribed,
    toDeliveries,
    add: deliveries.add,
    onAdded,
    onDropped: (names) => drop(new Map(names.map((name) => [name, 1]))),
    most: settings.mostIncoming,
    clock,
    log,
  })
  const stopWatching = events.on('config-changed', ({ changed }) => {
    if (changed.some((key) => key.startsWith('webhooks'))) read()
  })
  read()
  sweepRegularly()

  const webhooks = createWebhookService({
    storage,
    endpoints,
    sender,
    send,
    mask: masking.text,
    dropped: (name) => dropped.get(name) ?? 0,
    attemptMs: settings.attemptMs,
    clock,
    ids,
  })

  return {
    webhooks: {
      ...webhooks,
      servedAt(url) {
        ownUrl = url
      },
    },
    async close() {
      closed = true
      stopWatching()
      cancelSweep()
      await Promise.all([reading, sweeping, intake.close()])
      await sender.close()
    },
  }

  /** Applies a changed configuration: subscriptions, and endpoints that are no longer gone. */
  function read(): void {
    intake.sync()
    reading = reading
      .then(() => endpoints.read())
      .catch((error: unknown) => log.warn({ code: toGatewayError(error).code }, 'webhooks could not be read'))
      .then(() => {
        intake.sync()
        sender.wake()
      })
  }

  function toDeliveries(received: ReceivedEvent) {
    const names = endpoints.subscribed(received.name)
    if (names.length === 0) return []
    const body = toBody(received, { pageOf, mask: masking.value })
    const message = { type: received.name, body, createdAt: received.at }
    return names.map((endpoint) => ({ id: toMessageId(endpoint, received, ids), endpoint, ...message }))
  }

  function pageOf(approval: string): string | undefined {
    const base = config.current().listen.publicUrl ?? ownUrl
    return base && `${base.replace(/\/+$/, '')}/approvals/${approval}`
  }

  function onAdded(count: number): void {
    sender.wake()
    unswept += count
    // Limits the number of new deliveries between two sweeps.
    if (unswept > settings.bounds.waiting / 10) sweep()
  }

  function drop(counts: ReadonlyMap<string, number>): void {
    for (const [name, count] of counts) {
      const before = dropped.get(name) ?? 0
      dropped.set(name, before + count)
      if (before === 0) log.warn({ endpoint: name }, 'events for a webhook were dropped: too many are waiting')
    }
  }

  function sweepRegularly(): void {
    cancelSweep = clock.after(settings.sweepEvery, sweepRegularly)
    sweep()
  }

  function sweep(): void {
    if (closed) return
    unswept = 0
    sweeping ??= clean()
      .catch((error: unknown) => log.debug({ code: toGatewayError(error).code }, 'old deliveries could not be removed'))
      .finally(() => {
        sweeping = undefined
      })
  }

  async function clean(): Promise<void> {
    const tally = await deliveries.tally()
    const known = endpoints.names()
    const removed = [...tally].filter(([name, { waiting }]) => waiting > 0 && !known.includes(name))
    if (removed.length > 0)
      await deliveries.giveUp(
        removed.map(([name]) => name),
        'The endpoint was removed from the configuration',
      )
    if (tally.size > 0) drop(await deliveries.sweep(settings.bounds))
  }
}
