import { GatewayError } from '../contract/errors.ts'
import { isWebhookSecret } from '../contract/webhook.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretValue } from '../lib/secret.ts'

/** Posts JSON with additional headers. Resolves with the status if it is a success. */
export type Post = (
  posting: { readonly url: string; readonly body: string; readonly headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
) => Promise<number>

/** The address and signing secret of an endpoint, with templates filled in. */
export type Revealed = { readonly url: string; readonly secret: SecretValue }

export type Message = { readonly id: string; readonly body: string }

/** Signs a message (Standard Webhooks) at the time of each attempt, because receivers refuse old signatures. */
export async function sendSigned(
  { post, clock }: { readonly post: Post; readonly clock: Clock },
  { url, secret }: Revealed,
  { id, body }: Message,
  signal: AbortSignal,
): Promise<number> {
  const { Webhook } = await import('standardwebhooks')
  const now = new Date(clock.now())
  const signatures = toSecrets(secret).map((value) => new Webhook(value).sign(id, now, body))
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': signatures.join(' '),
  }
  return post({ url, body, headers }, signal)
}

/** Several secrets separated by spaces all sign the message, so that a secret can be rotated without a gap. */
function toSecrets(secret: SecretValue): string[] {
  const values = secret.reveal().trim().split(/\s+/)
  if (values.every(isWebhookSecret)) return values
  throw new GatewayError('config-invalid', 'The webhook secret must be whsec_ followed by 24 to 64 bytes in base64')
}
