import type { JsonObject } from '../contract/json.ts'
import { onAbort } from '../lib/signals.ts'
import { type Caller, isAtLeast, type Progress, type Questions, type Replies } from '../wire/caller.ts'
import { toLegacyQuestion } from '../wire/legacy.ts'
import type { McpCall } from './calls.ts'
import type { Presenting } from './present.ts'
import type { McpRequest } from './request.ts'
import type { McpSession } from './sessions.ts'

type LegacyCallerParts = {
  readonly request: McpRequest
  readonly session: McpSession
  readonly call: McpCall
  /** Aborts the call. */
  readonly controller: AbortController
  readonly presenting: Presenting
}

/** `close` when the call has ended: the request is no longer watched then. */
export type LegacyCaller = Caller & { close(): void }

/** A client of the older era: asked by requests on the stream of its call, it replies by requests of its own. */
export function createLegacyCaller({
  request,
  session,
  call,
  controller,
  presenting,
}: LegacyCallerParts): LegacyCaller {
  const { reply, principal, delivery } = request
  const { capabilities, logLevel } = session
  const { progressToken, method } = call
  const cancel = () => controller.abort()
  const onProgress = (progress: Progress) =>
    reply.notify('notifications/progress', { ...progress, progressToken: progressToken ?? null })
  let stopWatching = () => {}

  const caller: LegacyCaller = {
    signal: controller.signal,
    capabilities,
    logLevel: logLevel(),
    ask,
    lacks() {}, // the server's own error is all that this era can express
    tell(name, params) {
      if (name === 'notifications/message' && !isAtLeast(params.level, logLevel())) return
      // An elicitation at an address can be completed after its call has ended: then the session gets the notification.
      const isSent = reply.say({ jsonrpc: '2.0', method: name, params })
      if (!isSent && name === 'notifications/elicitation/complete') session.notify(name, params)
    },
    ...(progressToken !== undefined && { onProgress }),
    hearsProgress: () => progressToken !== undefined && reply.streams,
    present(approval, wait) {
      // From here on a client that disconnects has left the call. An equal call gets the outcome.
      if (reply.isGone()) cancel()
      stopWatching = reply.onGone(cancel)
      return presenting.show(approval, wait, { principal, method, caller })
    },
    onDelivered: delivery.onEnd,
    close: () => stopWatching(),
  }
  return caller

  async function ask(questions: Questions, signal: AbortSignal): Promise<Replies> {
    const ending = new AbortController()
    const unlink = onAbort(signal, () => ending.abort())
    const stop = reply.onGone(cancel) // a client that is gone can neither reply nor read the outcome
    try {
      const asked = Object.entries(questions).map(async ([key, question]): Promise<[string, JsonObject]> => {
        const result = await session.ask((id) => toLegacyQuestion(question, id), reply, ending.signal)
        return [key, result]
      })
      return Object.fromEntries(await Promise.all(asked))
    } finally {
      stop()
      unlink()
      ending.abort() // without one reply the others are useless
    }
  }
}
