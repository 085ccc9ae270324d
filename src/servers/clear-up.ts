import { toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Storage } from '../storage/storage.ts'
import { endMarked, endOrphan, type Orphan } from './process.ts'

const every = 5000

/** Ends the child processes of gateways that were killed, and closes their unfinished calls. */
export async function clearUp(storage: Storage, clock: Clock, log: Log): Promise<void> {
  const children = await storage.children.ofDeadInstances()
  const endedChildren = await endOrphans(children, await storage.children.deadInstances(), clock)
  await storage.children.forget(children)
  const { unknownCalls } = await storage.recover()
  if (endedChildren + unknownCalls > 0)
    log.warn({ endedChildren, unknownCalls }, 'cleaned up after a gateway that died')
}

/** Gateways that share a database clean up after one that died. Returns a function that stops the repeated cleanup. */
export function keepClearingUp(storage: Storage, clock: Clock, log: Log): () => Promise<void> {
  if (storage.kind === 'sqlite') return async () => {}
  let stopped = false
  let sweeping = Promise.resolve()
  let cancel = clock.after(every, sweep)
  function sweep(): void {
    sweeping = clearUp(storage, clock, log)
      .catch((error) => log.debug({ code: toGatewayError(error).code }, 'cleanup after dead gateways failed'))
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

/** Ends the processes of dead gateways, recorded or not. Returns the number of process groups that were ended. */
async function endOrphans(orphans: readonly Orphan[], dead: readonly string[], clock: Clock): Promise<number> {
  const ended = await Promise.all(orphans.map((orphan) => endOrphan(orphan, clock)))
  return ended.filter(Boolean).length + (await endMarked(dead, clock))
}
