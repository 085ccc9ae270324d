import { hash } from 'node:crypto'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'

/** The colours of pages without a script, for light and dark screens. */
export const colours = `
:root { color-scheme: light dark; --ink: #1a1d23; --soft: #5b6270; --card: #fff; --back: #f6f7f9; --line: #dcdfe5; --key: #2851c4; --on-key: #fff; --bad: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaee; --soft: #a3abb9; --card: #1a1d24; --back: #121419; --line: #31363f; --key: #8fb0ff; --on-key: #0c1630; --bad: #ff9d94 }
}`

type PageParts = { readonly title: string; readonly style: string; readonly headers: OutgoingHttpHeaders }

/** A page without a script. The browser may use its one style sheet, send a form to the gateway, and nothing else. */
export function createPlainPage({ title, style, headers }: PageParts) {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')

  return function send(response: ServerResponse, status: number, body: string): void {
    const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${toHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`
    response.writeHead(status, {
      'content-type': 'text/html; charset=utf-8',
      'content-length': Buffer.byteLength(page),
      'content-security-policy': policy,
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
      ...headers,
    })
    response.end(page)
  }
}

export function toHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
