import type { JsonObject } from '../contract/json.ts'
import { onAbort } from '../lib/signals.ts'
import { type Caller, isAtLeast, type Questions, type Replies } from '../wire/caller.ts'
import { toLegacyQuestion } from '../wire/legacy.ts'
import type { Reply } from './reply.ts'
import type { McpSession } from './sessions.ts'

/** A client of the older era is asked by requests on the stream of its call, and answers by requests of its own. */
export function createLegacyCaller(session: McpSession, reply: Reply, giveUp: () => void): Caller {
  const { capabilities, logLevel } = session

  return {
    capabilities,
    logLevel: logLevel(),
    ask,
    lacks() {}, // what the server then says is all that this era knows
    tell(method, params) {
      if (method === 'notifications/message' && !isAtLeast(params.level, logLevel())) return
      // What was begun at an address elsewhere is often done when the call is long over.
      const told = reply.say({ jsonrpc: '2.0', method, params })
      if (!told && method === 'notifications/elicitation/complete') session.notify(method, params)
    },
  }

  async function ask(questions: Questions, signal: AbortSignal): Promise<Replies> {
    const ending = new AbortController()
    const unlink = onAbort(signal, () => ending.abort())
    const stopLooking = reply.onGone(giveUp) // nobody is left who could answer, or read what comes of it
    try {
      const asked = Object.entries(questions).map(async ([key, question]): Promise<[string, JsonObject]> => {
        const result = await session.ask((id) => toLegacyQuestion(question, id), reply, ending.signal)
        return [key, result]
      })
      return Object.fromEntries(await Promise.all(asked))
    } finally {
      stopLooking()
      unlink()
      ending.abort() // one answer that does not come makes the others useless
    }
  }
}
