import { createHash } from 'node:crypto'
import type { ConfigStore } from '../config/config.ts'
import type { EventName } from '../contract/events.ts'
import { HttpServer } from '../contract/server.ts'
import type { Webhook, WebhookState } from '../contract/webhook.ts'
import { secret } from '../lib/secret.ts'
import type { Masking } from '../masking/masking.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Storage } from '../storage/storage.ts'
import type { Revealed } from './sending.ts'

export type EndpointParts = {
  readonly config: Pick<ConfigStore, 'current'>
  readonly secrets: Pick<Secrets, 'resolve'>
  readonly masking: Pick<Masking, 'hide'>
  readonly memory: Storage['memory']
}

/** The configured endpoints, and which of them answered 410 Gone. */
export type Endpoints = {
  names(): string[]
  find(name: string): Webhook | undefined
  state(name: string): WebhookState
  /** Names of the ready endpoints that subscribe to this event. */
  subscribed(event: EventName): string[]
  /** Names of the endpoints that messages may be sent to. */
  ready(): string[]
  /** Fills in the secret. Call directly before sending. Throws `variable-missing`. */
  reveal(name: string): Revealed
  /** Sends nothing to the endpoint until its entry changes. */
  markGone(name: string): void
  /** Reads the endpoints again after a change of the configuration, and masks their plain-text secrets. */
  read(): Promise<void>
}

export function createEndpoints({ config, secrets, masking, memory }: EndpointParts): Endpoints {
  /** The fingerprint of each entry that answered 410, by name. */
  const gone = new Map<string, string>()
  const all = () => config.current().webhooks
  const find = (name: string) => (Object.hasOwn(all(), name) ? all()[name] : undefined)

  function state(name: string): WebhookState {
    const webhook = find(name)
    if (!webhook?.enabled) return 'disabled'
    return gone.has(name) && gone.get(name) === toFingerprint(webhook) ? 'gone' : 'ready'
  }

  const ready = () => Object.keys(all()).filter((name) => state(name) === 'ready')

  return {
    names: () => Object.keys(all()),
    find,
    state,
    ready,
    subscribed: (event) => ready().filter((name) => find(name)?.events.includes(event)),
    reveal(name) {
      const { url, secret: text } = find(name) ?? { url: '', secret: '' }
      const id = `webhook:${name}`
      // Templates can only be filled in for server definitions, so the secret is passed as a header.
      const definition = HttpServer.parse({ transport: 'http', url, headers: { secret: text } })
      const filled = HttpServer.parse(secrets.resolve(id, { name: id, definition, origins }))
      const value = filled.headers.secret ?? ''
      hide(value)
      return { url: filled.url, secret: secret(value) }
    },
    markGone(name) {
      const webhook = find(name)
      if (!webhook) return
      gone.set(name, toFingerprint(webhook))
      memory.set(toKey(name), toFingerprint(webhook))
    },
    async read() {
      for (const [name, webhook] of Object.entries(all())) {
        if (!webhook.secret.includes('${')) hide(webhook.secret)
        const fingerprint = await memory.get(toKey(name))
        if (fingerprint !== undefined) gone.set(name, fingerprint)
      }
    },
  }

  /** Masks the secrets with and without the prefix `whsec_`. */
  function hide(text: string): void {
    for (const value of text.trim().split(/\s+/)) {
      masking.hide(value)
      masking.hide(value.replace(/^whsec_/, ''))
    }
  }
}

const origins = { url: 'global', headers: 'global' } as const

function toKey(name: string): string {
  return `webhook-gone:${name}`
}

function toFingerprint({ url, secret: text, events, enabled }: Webhook): string {
  return createHash('sha256')
    .update(JSON.stringify([url, text, events, enabled]))
    .digest('hex')
}
