import type { Present, SaidThere, Wait } from '../calls/calls.ts'
import type { Approval } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { CallMethod } from '../contract/permit.ts'
import type { Principal } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import { onAbort } from '../lib/signals.ts'
import { toVisible, toVisibleJson } from '../shared/visible.ts'
import { type Caller, missingFor, type Question } from '../wire/caller.ts'
import type { Progress } from '../wire/peer.ts'

/** Whoever waits for a call that a person is asked about, and how it is reached. */
export type Audience = {
  readonly principal: Principal
  readonly caller: Caller
  readonly method: CallMethod
  /** Whether the request that waits now is told of progress. */
  hearsProgress(): boolean
  onProgress(progress: Progress): void
}

/** How MCP shows that a person is asked: by what the client declared, never by what it is called. */
export type Presenting = {
  /** Where people answer it. */
  addressOf(approval: string): string
  to(audience: Audience): Present
  /** A token no longer counts: whoever waits with it waits for nothing. Its questions stay. */
  endOf(principal: Principal): void
}

type PresentingParts = {
  /** Where people reach the gateway. */
  readonly baseUrl: () => string
  /** Milliseconds for which a call is held open where no progress is heard. */
  readonly hold: () => number
  readonly clock: Clock
}

const tellEveryMs = 5000
/** A question expires by itself; should that fail, nobody is held for much longer. */
const graceMs = 5000
/** What is too long to be read in a form is not approved in one. */
const mostShown = 32_768
const longestReason = 2000
/** The requests that both eras let be answered with a question. */
const askable: readonly CallMethod[] = ['tools/call', 'prompts/get', 'resources/read']

export function createPresenting({ baseUrl, hold, clock }: PresentingParts): Presenting {
  const open = new Map<() => void, Principal>()

  return {
    addressOf,
    to: (audience) => (question, wait) => whileValid(question, audience, wait),
    endOf(principal) {
      for (const [end, by] of open) if (by === principal) end()
    },
  }

  function addressOf(approval: string): string {
    return `${baseUrl().replace(/\/+$/, '')}/approvals/${approval}`
  }

  /** What a token was good for when a call came in may be over when a person has thought about it. */
  async function whileValid(question: Approval, audience: Audience, wait: Wait): Promise<SaidThere | undefined> {
    const ending = new AbortController()
    const end = () => ending.abort()
    let revoked = false
    const revoke = () => {
      revoked = true
      end()
    }
    const unlink = onAbort(wait.signal, end)
    open.set(revoke, audience.principal)
    const stopTelling = keepTelling(question, audience)
    try {
      const said = await present(question, audience, { settled: wait.settled, signal: ending.signal })
      if (revoked) throw new GatewayError('token-invalid', 'The token was revoked while a person was asked')
      return said
    } finally {
      stopTelling()
      open.delete(revoke)
      unlink()
    }
  }

  async function present(question: Approval, audience: Audience, wait: Wait): Promise<SaidThere | undefined> {
    const { caller, method } = audience
    let settled = false
    wait.settled.then(() => {
      settled = !wait.signal.aborted
    })
    const shown = askable.includes(method) ? toShown(question, caller, addressOf(question.id)) : undefined
    const reply = shown && (await show(shown, caller, wait))
    const said = reply && shown?.params.mode !== 'url' ? toSaid(reply) : undefined
    if (said) return said
    if (!settled && !wait.signal.aborted) await holdOpen(question, audience, wait)
    if (settled && shown?.params.mode === 'url')
      caller.tell('notifications/elicitation/complete', { elicitationId: question.id })
    return undefined
  }

  /** Undefined when it could not be shown, or was taken back. */
  async function show(shown: Question, caller: Caller, { settled, signal }: Wait): Promise<JsonObject | undefined> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const unlink = onAbort(signal, end)
    // Nothing runs without a request that waits for it: between two of them it stays asked, whatever people say.
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

  async function holdOpen(question: Approval, audience: Audience, { settled, signal }: Wait): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const unlink = onAbort(signal, resolve)
    settled.then(resolve)
    const left = Math.max(0, Date.parse(question.expiresAt) - clock.now()) + graceMs
    const cancel = clock.after(audience.hearsProgress() ? left : hold(), resolve)
    await promise
    cancel()
    unlink()
  }

  function keepTelling({ id, tool }: Approval, { hearsProgress, onProgress }: Audience): () => void {
    const message = `${tool} is waiting for approval ${id} at ${addressOf(id)}`
    let told = 0
    let cancel = () => {}
    const tell = () => {
      told += 1
      // It may only ever grow, and what the server reports afterwards starts at 1 most often.
      if (hearsProgress()) onProgress({ progress: told / 1000, message })
      cancel = clock.after(tellEveryMs, tell)
    }
    tell()
    return () => cancel()
  }
}

/** A form where the person at the client may answer, else the way to the page; undefined where neither can be shown. */
function toShown(question: Approval, caller: Caller, url: string): Question | undefined {
  const form = question.approvers.includes('client') ? toForm(question, url) : undefined
  if (form && !missingFor(caller, { form })) return form
  const page = toPage(question, url)
  return missingFor(caller, { page }) ? undefined : page
}

function toPage({ id, title, tool }: Approval, url: string): Question {
  const message = `${toVisible(title)}: ${tool} runs when a person has approved it at ${url}`
  return { method: 'elicitation/create', params: { mode: 'url', elicitationId: id, url, message } }
}

/** Whoever answers here sees everything that will be sent, or is not asked here. */
function toForm(question: Approval, url: string): Question | undefined {
  const { title, tool, risk, principal, reason, arguments: given, input, meta } = question
  const along = input === undefined ? '' : `\n\nGoing along: ${toVisibleJson(JSON.stringify(input, null, 2))}`
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

/** Without defaults: a client that fills them in would answer by itself. */
const requestedSchema: JsonObject = {
  type: 'object',
  properties: {
    decision: { type: 'string', title: 'Decision', enum: ['approve', 'deny'] },
    reason: {
      type: 'string',
      title: 'Reason',
      description: 'Given to the agent when the answer is no',
      maxLength: longestReason,
    },
  },
  required: ['decision'],
}

/** Closing the form says nothing, and neither does an answer that is none of those it offers. */
function toSaid({ action, content }: JsonObject): SaidThere | undefined {
  if (action === 'decline') return { verdict: 'deny' }
  if (action !== 'accept' || !isObject(content)) return undefined
  const { decision, reason } = content
  if (decision === 'approve') return { verdict: 'approve' }
  if (decision !== 'deny') return undefined
  return { verdict: 'deny', ...(typeof reason === 'string' && { reason: reason.slice(0, longestReason) }) }
}
