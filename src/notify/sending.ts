import { GatewayError } from '../contract/errors.ts'
import { isWebhookSecret } from '../contract/webhook.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretValue } from '../lib/secret.ts'

/** Posts JSON with further headers; resolves with the status of an answer that says it was taken. */
export type Post = (
  posting: { readonly url: string; readonly body: string; readonly headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
) => Promise<number>

/** An endpoint's address and what it is signed with, templates filled in. */
export type Revealed = { readonly url: string; readonly secret: SecretValue }

export type Message = { readonly id: string; readonly body: string }

/** Sends one message, signed after Standard Webhooks at this very moment: receivers refuse what was signed long ago. */
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

/** Several with blanks between them sign each: so a secret is changed without a message that nobody can check. */
function toSecrets(secret: SecretValue): string[] {
  const values = secret.reveal().trim().split(/\s+/)
  if (values.every(isWebhookSecret)) return values
  throw new GatewayError('config-invalid', 'The secret is not whsec_ and 24 to 64 bytes in base64')
}
