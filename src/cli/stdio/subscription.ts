import type { JsonObject } from '../../contract/json.ts'
import { backoffDelay } from '../../lib/backoff.ts'
import { type Clock, sleep } from '../../lib/clock.ts'
import { isObject, parseJson } from '../../lib/json.ts'
import type { Http, Reply } from './http.ts'
import { credentials, type Joined, type Joining } from './joining.ts'
import { findEnvelope, listKinds, type Message, toAnswer, toListChanged } from './message.ts'

type SubscriptionParts = {
  readonly joining: Joining
  readonly http: Http
  readonly path: string
  readonly clock: Clock
  write(message: Buffer): void
}

const retry = { first: 200, most: 5000, factor: 2 }

/** Keeps a subscription of the client open: when the gateway ends, subscribes again at the next gateway. */
export async function keepSubscription(
  parts: SubscriptionParts,
  message: Message,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  let acknowledged = false
  let gateway: Joined | undefined = await parts.joining.join()
  for (let attempt = 1; !signal.aborted; attempt++) {
    const reply = gateway && (await listen(gateway))
    if (reply && !reply.streamed && !isPassing(reply)) {
      const answer = toAnswer(reply, id)
      if (answer && !signal.aborted) parts.write(answer)
      return
    }
    if (reply?.streamed) attempt = 0
    await sleep(parts.clock, backoffDelay(attempt, retry), signal).catch(() => {})
    gateway = await parts.joining.find().catch(() => undefined)
  }

  async function listen(to: Joined): Promise<Reply | undefined> {
    return parts.http
      .send({
        method: 'POST',
        url: new URL(parts.path, to.url),
        headers: { ...message.headers, ...credentials(to.token) },
        body: message.line,
        signal,
        onEvent,
      })
      .catch(() => undefined)
  }

  function onEvent(event: Buffer): void {
    const envelope = findEnvelope(event)
    // A result means that the gateway is ending; the client's subscription continues.
    if (envelope?.kind === 'result' && envelope.id === id) return
    const isGreeting =
      envelope?.kind === 'notification' && envelope.method === 'notifications/subscriptions/acknowledged'
    if (isGreeting && acknowledged) return tellChanges(event)
    acknowledged ||= isGreeting
    parts.write(event)
  }

  /** After a new subscription: changes during the gap are unknown, so report that all lists may have changed. */
  function tellChanges(greeting: Buffer): void {
    const value = parseJson(greeting)
    const params = isObject(value) && isObject(value.params) ? value.params : {}
    const honoured = isObject(params.notifications) ? params.notifications : {}
    const meta: JsonObject = isObject(params._meta) ? { _meta: params._meta } : {}
    for (const kind of listKinds) if (honoured[`${kind}ListChanged`] === true) parts.write(toListChanged(kind, meta))
  }
}

/** The gateway is ending, or a proxy cannot reach it: retry. */
function isPassing({ status }: Reply): boolean {
  return status >= 502 && status <= 504
}
