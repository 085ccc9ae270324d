import { hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Identity } from '../identity/identity.ts'
import { readBytes } from '../lib/body.ts'

export const setupPath = '/setup'

export type SetupPage = {
  handle(request: IncomingMessage, response: ServerResponse, demandOwnPage: () => void): Promise<void>
}

/** The cookie of whoever has just been made; none where the sign-in failed. */
export type SignIn = (
  person: { name: string; password: string },
  request: IncomingMessage,
) => Promise<string | undefined>

const mostBytes = 16_384

/** Where the one-time link leads: a page without a program in it, which makes the first administrator. */
export function createSetupPage(setup: Identity['setup'], signIn: SignIn): SetupPage {
  return {
    async handle(request, response, demandOwnPage) {
      if (request.method === 'GET') {
        const code = new URLSearchParams(request.url?.split('?', 2)[1]).get('code') ?? ''
        return setup.accepts(code) ? send(response, 200, form({ code })) : send(response, 403, gone)
      }
      if (request.method !== 'POST') {
        response.setHeader('allow', 'GET, POST')
        return send(response, 405, gone)
      }
      demandOwnPage()
      const fields = new URLSearchParams(await readForm(request))
      const [code, name, password] = [fields.get('code') ?? '', fields.get('name') ?? '', fields.get('password') ?? '']
      try {
        await setup.finish({ code, name, password })
      } catch (error) {
        const { code: kind, message } = toGatewayError(error)
        if (kind === 'request-invalid') return send(response, 400, form({ code, name, problem: message }))
        if (kind === 'forbidden') return send(response, 403, gone)
        throw error
      }
      const cookie = await signIn({ name, password }, request)
      if (cookie !== undefined) response.setHeader('set-cookie', cookie)
      send(response, 200, done(name, cookie !== undefined))
    },
  }
}

async function readForm(request: IncomingMessage): Promise<string> {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new GatewayError('request-invalid', 'This page takes what its form sends')
  return (await readBytes(request, { mostBytes })).toString('utf8')
}

const style = `
:root { color-scheme: light dark; --ink: #1a1d23; --soft: #5b6270; --card: #fff; --back: #f6f7f9; --line: #dcdfe5; --key: #2851c4; --on-key: #fff; --bad: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaee; --soft: #a3abb9; --card: #1a1d24; --back: #121419; --line: #31363f; --key: #8fb0ff; --on-key: #0c1630; --bad: #ff9d94 }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--back); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif }
main { width: 100%; max-width: 24rem; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem }
h1 { margin: 0 0 .5rem; font-size: 1.375rem; line-height: 1.25 }
p { margin: 0 0 1rem; color: var(--soft) }
p.problem { color: var(--bad) }
label { display: block; margin: 1rem 0 .25rem; font-weight: 600 }
input { width: 100%; padding: .625rem .75rem; font: inherit; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: .5rem }
button, a.button { display: block; width: 100%; margin-top: 1.5rem; padding: .75rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; color: var(--on-key); background: var(--key); border: 0; border-radius: .5rem; cursor: pointer }
input:focus-visible, button:focus-visible, a:focus-visible { outline: 3px solid var(--key); outline-offset: 2px }
code { color: var(--ink) }
`

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  // The address holds the code. Without any referrer a browser would not say either that the form is ours.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

function send(response: ServerResponse, status: number, body: string): void {
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sallyport: the first administrator</title>
<style>${style}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(page) }).end(page)
}

function form({ code, name = '', problem }: { code: string; name?: string; problem?: string }): string {
  return `<h1>The first administrator</h1>
<p>Whoever you make here sets rules, answers questions and adds other people.</p>
${problem === undefined ? '' : `<p class="problem" role="alert">${toHtml(problem)}.</p>`}
<form method="post" action="${setupPath}">
<input type="hidden" name="code" value="${toHtml(code)}">
<label for="name">Name</label>
<input id="name" name="name" value="${toHtml(name)}" required maxlength="64" autocomplete="username" autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" required minlength="12" maxlength="1024" autocomplete="new-password" aria-describedby="rule">
<p id="rule">At least 12 characters.</p>
<button>Make the administrator</button>
</form>`
}

function done(name: string, signedIn: boolean): string {
  return `<h1>Done</h1>
<p>${toHtml(name)} is the administrator of this gateway, and this link is used up.</p>
<p>At a terminal, <code>sallyport users list --as ${toHtml(name)}</code> signs in for one command.</p>
<a class="button" href="/">${signedIn ? 'Open the dashboard' : 'Sign in'}</a>`
}

const gone = `<h1>This link does nothing any more</h1>
<p>It was used, it has expired, or there is an administrator already. While there is no administrator, <code>sallyport setup-link</code> prints a new one.</p>`

function toHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
