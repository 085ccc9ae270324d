import { toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { BegunChange, ChangeOutcome, ConfigChangeStore } from '../storage/config-changes.ts'

export type Outcomes = {
  /** Does not throw: the change itself is over. An outcome that cannot be recorded now is tried again. */
  end(change: BegunChange, outcome: ChangeOutcome): Promise<void>
  /** Records what could not be recorded before; throws if the database still refuses it. */
  retry(): Promise<void>
  close(): Promise<void>
}

type OutcomesParts = {
  readonly record: Pick<ConfigChangeStore, 'end'>
  readonly clock: Clock
  readonly log: Log
  readonly retryMs: number
}

/** The outcomes of changes on their way into the record. The start of the next gateway records those that are lost here. */
export function createOutcomes({ record, clock, log, retryMs }: OutcomesParts): Outcomes {
  const open: (readonly [BegunChange, ChangeOutcome])[] = []
  let cancel = (): void => undefined

  async function retry(): Promise<void> {
    for (let [next] = open; next; [next] = open) {
      await record.end(...next)
      open.shift()
    }
  }

  function retryLater(): void {
    cancel()
    cancel = clock.after(retryMs, () => void retry().catch(retryLater))
  }

  return {
    async end(change, outcome) {
      open.push([change, outcome])
      await retry().catch((error: unknown) => {
        log.error(
          { code: toGatewayError(error).code },
          'the outcome of a configuration change could not be recorded yet',
        )
        retryLater()
      })
    },
    retry,
    async close() {
      cancel()
      await retry().catch(() => undefined)
    },
  }
}
