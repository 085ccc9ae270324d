import type { Approval } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { CallMethod } from '../contract/permit.ts'
import type { Principal } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import { onAbort } from '../lib/signals.ts'
import { toVisible, toVisibleJson } from '../shared/visible.ts'
import { type Caller, type ClientAnswer, missingFor, type Question, type Wait } from '../wire/caller.ts'

/** The client that is shown an approval, and its request. */
export type Viewer = { readonly principal: Principal; readonly method: CallMethod; readonly caller: Caller }

/** How MCP clients are shown an approval. It depends on the capabilities a client declared, never on its name. */
export type Presenting = {
  /** Address of the page of an approval. */
  addressOf(approval: string): string
  show(approval: Approval, wait: Wait, viewer: Viewer): Promise<ClientAnswer | undefined>
  /** A token was revoked: requests that wait with it are ended. Their approvals stay. */
  endOf(principal: Principal): void
}

type PresentingParts = {
  /** Address of the gateway for browsers. */
  readonly baseUrl: () => string
  /** Milliseconds for which a request is held open if its client receives no progress. */
  readonly hold: () => number
  readonly clock: Clock
}

const tellEveryMs = 5000
/** Approvals expire on their own. Should that fail, a request is not held much longer than the expiry. */
const graceMs = 5000
/** Longer arguments are not shown in a form: nobody would read them there. */
const mostShown = 32_768
const longestReason = 2000
/** The requests during which both eras allow a question to the client. */
const askable: readonly CallMethod[] = ['tools/call', 'prompts/get', 'resources/read']

export function createPresenting({ baseUrl, hold, clock }: PresentingParts): Presenting {
  const open = new Map<() => void, Principal>()

  return {
    addressOf,
    show: whileValid,
    endOf(principal) {
      for (const [end, by] of open) if (by === principal) end()
    },
  }

  function addressOf(approval: string): string {
    return `${baseUrl().replace(/\/+$/, '')}/approvals/${approval}`
  }

  /** Ends when the token of the request is revoked while the person decides. */
  async function whileValid(approval: Approval, wait: Wait, viewer: Viewer): Promise<ClientAnswer | undefined> {
    const ending = new AbortController()
    const end = () => ending.abort()
    let revoked = false
    const revoke = () => {
      revoked = true
      end()
    }
    const unlink = onAbort(wait.signal, end)
    open.set(revoke, viewer.principal)
    const stopTelling = keepTelling(approval, viewer.caller)
    try {
      const given = await present(approval, viewer, { settled: wait.settled, signal: ending.signal })
      if (revoked) throw new GatewayError('token-invalid', 'The token was revoked while the call waited for approval')
      return given
    } finally {
      stopTelling()
      open.delete(revoke)
      unlink()
    }
  }

  async function present(
    approval: Approval,
    { caller, method }: Viewer,
    wait: Wait,
  ): Promise<ClientAnswer | undefined> {
    let settled = false
    wait.settled.then(() => {
      settled = !wait.signal.aborted
    })
    const shown = askable.includes(method) ? toShown(approval, caller, addressOf(approval.id)) : undefined
    const reply = shown && (await ask(shown, caller, wait))
    const given = reply && shown?.params.mode !== 'url' ? toClientAnswer(reply) : undefined
    if (given) return given
    if (!settled && !wait.signal.aborted) await holdOpen(approval, caller, wait)
    if (settled && shown?.params.mode === 'url')
      caller.tell('notifications/elicitation/complete', { elicitationId: approval.id })
    return undefined
  }

  /** Undefined when the client refused the question, or the approval was settled elsewhere. */
  async function ask(shown: Question, caller: Caller, { settled, signal }: Wait): Promise<JsonObject | undefined> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const unlink = onAbort(signal, end)
    // A client that parks has no open request now, and a call runs only for an open request: the question stays.
    if (!caller.parks) settled.then(end)
    try {
      const { approval } = await caller.ask({ approval: shown }, ending.signal)
      return approval
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'question-refused') return undefined
      throw error
    } finally {
      unlink()
    }
  }

  async function holdOpen(approval: Approval, { hearsProgress }: Caller, { settled, signal }: Wait): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const unlink = onAbort(signal, resolve)
    settled.then(resolve)
    const left = Math.max(0, Date.parse(approval.expiresAt) - clock.now()) + graceMs
    const cancel = clock.after(hearsProgress?.() ? left : hold(), resolve)
    await promise
    cancel()
    unlink()
  }

  function keepTelling({ id, tool }: Approval, { hearsProgress, onProgress }: Caller): () => void {
    const message = `${tool} is waiting for approval ${id} at ${addressOf(id)}`
    let told = 0
    let cancel = () => {}
    const tell = () => {
      told += 1
      // Progress must grow, and the server's own progress usually starts at 1.
      if (hearsProgress?.()) onProgress?.({ progress: told / 1000, message })
      cancel = clock.after(tellEveryMs, tell)
    }
    tell()
    return () => cancel()
  }
}

/** A form if the person at the client may answer, else the address of the page; undefined if the client can show neither. */
function toShown(approval: Approval, caller: Caller, url: string): Question | undefined {
  const form = approval.approvers.includes('client') ? toForm(approval, url) : undefined
  if (form && !missingFor(caller, { form })) return form
  const page = toPage(approval, url)
  return missingFor(caller, { page }) ? undefined : page
}

function toPage({ id, title, tool }: Approval, url: string): Question {
  const message = `${toVisible(title)}: ${tool} runs when a person has approved it at ${url}`
  return { method: 'elicitation/create', params: { mode: 'url', elicitationId: id, url, message } }
}

/** Undefined if the form could not show everything that will be sent. */
function toForm(approval: Approval, url: string): Question | undefined {
  const { title, tool, risk, principal, reason, arguments: given, input, meta } = approval
  const along = input === undefined ? '' : `\n\nSent with them: ${toVisibleJson(JSON.stringify(input, null, 2))}`
  const sent = meta === undefined ? '' : `\n\n_meta: ${toVisibleJson(JSON.stringify(meta, null, 2))}`
  const shown = `${toVisibleJson(JSON.stringify(given ?? {}, null, 2))}${along}${sent}`
  if (shown.length > mostShown) return undefined
  const message = [
    toVisible(title),
    `${principal} asks to run ${tool} (${risk}): ${toVisible(reason)}`,
    `Arguments: ${shown}`,
    `It can also be answered at ${url}`,
  ].join('\n\n')
  return { method: 'elicitation/create', params: { message, requestedSchema } }
}

/** No defaults: a client that fills them in would answer without a person. */
const requestedSchema: JsonObject = {
  type: 'object',
  properties: {
    decision: { type: 'string', title: 'Decision', enum: ['approve', 'deny'] },
    reason: {
      type: 'string',
      title: 'Reason',
      description: 'Given to the agent if you deny',
      maxLength: longestReason,
    },
  },
  required: ['decision'],
}

/** Undefined when the form was closed, or the answer is none of those offered. */
function toClientAnswer({ action, content }: JsonObject): ClientAnswer | undefined {
  if (action === 'decline') return { verdict: 'deny' }
  if (action !== 'accept' || !isObject(content)) return undefined
  const { decision, reason } = content
  if (decision === 'approve') return { verdict: 'approve' }
  if (decision !== 'deny') return undefined
  return { verdict: 'deny', ...(typeof reason === 'string' && { reason: reason.slice(0, longestReason) }) }
}
