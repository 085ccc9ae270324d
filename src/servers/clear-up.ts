import { toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Storage } from '../storage/storage.ts'
import { endMarked, endOrphan, type Orphan } from './process.ts'

const every = 5000

/** What gateways that were killed left behind: their calls get their end, their children theirs. */
export async function clearUp(storage: Storage, clock: Clock, log: Log): Promise<void> {
  const children = await storage.children.ofDeadInstances()
  const endedChildren = await endOrphans(children, await storage.children.deadInstances(), clock)
  await storage.children.forget(children)
  const { unknownCalls } = await storage.recover()
  if (endedChildren + unknownCalls > 0)
    log.warn({ endedChildren, unknownCalls }, 'cleared up after a gateway that died')
}

/** Of several gateways on one database, those that live clear up after one that dies. Call what it returns to stop. */
export function keepClearingUp(storage: Storage, clock: Clock, log: Log): () => Promise<void> {
  if (storage.kind === 'sqlite') return async () => {}
  let stopped = false
  let sweeping = Promise.resolve()
  let cancel = clock.after(every, sweep)
  function sweep(): void {
    sweeping = clearUp(storage, clock, log)
      .catch((error) => log.debug({ code: toGatewayError(error).code }, 'nothing could be cleared up'))
      .then(() => {
        if (!stopped) cancel = clock.after(every, sweep)
      })
  }
  return async () => {
    stopped = true
    cancel()
    await sweeping
  }
}

/** Ends what gateways that died left running, recorded or not. Returns how many process groups that were. */
async function endOrphans(orphans: readonly Orphan[], dead: readonly string[], clock: Clock): Promise<number> {
  const ended = await Promise.all(orphans.map((orphan) => endOrphan(orphan, clock)))
  return ended.filter(Boolean).length + (await endMarked(dead, clock))
}
