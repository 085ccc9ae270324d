import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'

/**
 * The time of day from the database's clock, the same for all instances. So approvals, grants, tokens and sessions
 * expire at the same moment everywhere, even if a machine's clock is wrong.
 */
export type SharedClock = Clock & {
  /** Reads the database's clock and stores the offset of the machine's clock. */
  measure(readDatabase: () => Promise<number>): Promise<void>
  /** An error if the machine's clock is too wrong to accept calls. */
  findProblem(): GatewayError | undefined
}

/**
 * Smaller offsets are corrected. A larger one means that the machine's clock is not synchronised at all: certificates
 * and signed webhooks, which use the machine's clock, would fail too.
 */
export const mostOffsetMs = 10 * 60_000

export function createSharedClock(machine: Clock): SharedClock {
  /** The difference between the database's clock and the machine's clock. */
  let offset = 0

  return {
    now: () => machine.now() + offset,
    monotonic: () => machine.monotonic(),
    after: (milliseconds, task) => machine.after(milliseconds, task),
    async measure(readDatabase) {
      const [sentAt, began] = [machine.now(), machine.monotonic()]
      const databaseTime = await readDatabase()
      if (machine.common) return
      const roundTrip = Math.ceil(machine.monotonic() - began)
      // The database read its clock at some time during the round trip, and rounded down to milliseconds.
      const [least, most] = [databaseTime - sentAt - roundTrip, databaseTime - sentAt + 1]
      // The offset only changes if it is outside the possible range, so that a slow answer does not change the time.
      offset = Math.min(most, Math.max(least, offset))
    },
    findProblem() {
      if (Math.abs(offset) <= mostOffsetMs) return undefined
      const off = `${describe(Math.abs(offset))} ${offset > 0 ? 'behind' : 'ahead of'}`
      return new GatewayError(
        'clock-wrong',
        `The clock of this machine is ${off} the database's clock; the maximum is ${describe(mostOffsetMs)}`,
        { offsetMs: offset },
      )
    },
  }
}

function describe(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000)
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`
}
