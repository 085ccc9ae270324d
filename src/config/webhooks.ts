import type { Config } from '../contract/config.ts'
import { isWebhookSecret, type Webhook } from '../contract/webhook.ts'
import { hiddenMark } from '../lib/secret.ts'
import type { Finding } from './problems.ts'
import { parseTemplate } from './templates.ts'

const mostEndpoints = 50

export function checkWebhooks({ webhooks }: Config): Finding[] {
  const entries = Object.entries(webhooks)
  const many = `has ${entries.length} entries; at most ${mostEndpoints} are allowed`
  return [
    ...(entries.length > mostEndpoints ? [{ path: ['webhooks'], message: many }] : []),
    ...entries.flatMap(([name, webhook]) =>
      [...checkAddress(webhook), ...checkSecret(webhook)].map((finding) => ({
        ...finding,
        path: ['webhooks', name, ...finding.path],
      })),
    ),
  ]
}

function checkAddress({ url }: Webhook): Finding[] {
  const path = ['url']
  const template = parseTemplate(url)
  if (!template.ok) return [{ path, message: template.message }]
  if (!/^https?:\/\//i.test(url)) return [{ path, message: 'must begin with https:// or http://' }]
  const { username, password } = new URL(url)
  if (username === '' && password === '') return []
  return [{ path, message: 'must not contain a user name or password: receivers verify messages by their signature' }]
}

function checkSecret({ secret }: Webhook): Finding[] {
  const path = ['secret']
  const template = parseTemplate(secret)
  if (!template.ok) return [{ path, message: template.message }]
  if (secret.includes('${') || secret.trim().split(/\s+/).every(isWebhookSecret)) return []
  return [{ path, message: 'must be ${NAME}, or whsec_ followed by 24 to 64 bytes in base64' }]
}

/** Warnings about valid but insecure webhooks. */
export function listWebhookNotices({ webhooks }: Config): Finding[] {
  return Object.entries(webhooks).flatMap(([name, { url, secret }]): Finding[] => {
    const { protocol, hostname } = new URL(url)
    const open = protocol === 'http:' && !isLoopback(hostname)
    const read = 'uses http: others on the network can read the messages; use https://'
    const plain = 'is a secret in plain text: store it with `sallyport secrets set NAME`, and write ${NAME}'
    return [
      ...(open ? [{ path: ['webhooks', name, 'url'], message: read }] : []),
      ...(isReference(secret) ? [] : [{ path: ['webhooks', name, 'secret'], message: plain }]),
    ]
  })
}

/** The webhooks for display. A secret that is not a reference such as `${NAME}` is hidden. */
export function toShownWebhooks({ webhooks }: Config): Config['webhooks'] {
  const shown = Object.entries(webhooks).map(([name, webhook]): [string, Webhook] => [
    name,
    isReference(webhook.secret) ? webhook : { ...webhook, secret: hiddenMark },
  ])
  return Object.fromEntries(shown)
}

/** Whether the text is only `${NAME}`. A fallback would be a secret in plain text. */
function isReference(text: string): boolean {
  return /^\s*\$\{[A-Za-z_][A-Za-z0-9_]*\}(\s+\$\{[A-Za-z_][A-Za-z0-9_]*\})*\s*$/.test(text)
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\./.test(hostname)
}
