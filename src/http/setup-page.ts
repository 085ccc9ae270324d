import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Identity } from '../identity/identity.ts'
import { readBytes } from '../lib/body.ts'
import { colours, createPlainPage, toHtml } from './plain-page.ts'

export const setupPath = '/setup'

export type SetupPage = {
  handle(request: IncomingMessage, response: ServerResponse, demandOwnPage: () => void): Promise<void>
}

/** Signs in the new administrator and returns the cookie; undefined if the sign-in failed. */
export type SignIn = (
  person: { name: string; password: string },
  request: IncomingMessage,
) => Promise<string | undefined>

const mostBytes = 16_384

/** The page of the one-time link, which creates the first administrator. It contains no scripts. */
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
    throw new GatewayError('request-invalid', 'Send the form of this page as application/x-www-form-urlencoded')
  return (await readBytes(request, { mostBytes })).toString('utf8')
}

const style = `${colours}
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

const send = createPlainPage({
  title: 'Sallyport: create the first administrator',
  style,
  headers: {
    'cache-control': 'no-store',
    // The address contains the code, so it must not be sent to other sites. With `no-referrer`, the form would send `Origin: null`.
    'referrer-policy': 'same-origin',
  },
})

function form({ code, name = '', problem }: { code: string; name?: string; problem?: string }): string {
  return `<h1>Create the first administrator</h1>
<p>This administrator can set rules, answer approvals and add other users.</p>
${problem === undefined ? '' : `<p class="problem" role="alert">${toHtml(problem)}.</p>`}
<form method="post" action="${setupPath}">
<input type="hidden" name="code" value="${toHtml(code)}">
<label for="name">Name</label>
<input id="name" name="name" value="${toHtml(name)}" required maxlength="64" autocomplete="username" autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" required minlength="12" maxlength="1024" autocomplete="new-password" aria-describedby="rule">
<p id="rule">At least 12 characters.</p>
<button>Create administrator</button>
</form>`
}

function done(name: string, signedIn: boolean): string {
  return `<h1>Done</h1>
<p>${toHtml(name)} is now the administrator of this gateway. The link no longer works.</p>
<p>In a terminal, sign in for one command with <code>--as</code>: <code>sallyport users list --as ${toHtml(name)}</code></p>
<a class="button" href="/">${signedIn ? 'Open the dashboard' : 'Sign in'}</a>`
}

const gone = `<h1>This link is not valid</h1>
<p>The link was used, it has expired, or an administrator already exists. If there is no administrator yet, print a new link with <code>sallyport setup-link</code>.</p>`
