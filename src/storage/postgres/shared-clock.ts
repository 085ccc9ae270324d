import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'

/**
 * The time of day by the database's clock, the same for all instances on it. Approvals, grants, tokens and sessions
 * therefore expire at the same moment everywhere, even where a machine's clock is wrong.
 */
export type SharedClock = Clock & {
  /** Reads the database's clock and takes over how far the machine's clock is from it. */
  measure(readDatabase: () => Promise<number>): Promise<void>
  /** The machine's clock is too wrong to serve with. */
  findProblem(): GatewayError | undefined
}

/**
 * Small errors are corrected. A larger one means that the machine's clock is not kept at all: certificates, signed webhooks
 * and whatever else goes by the machine's clock would be wrong too.
 */
export const mostOffsetMs = 10 * 60_000

export function createSharedClock(machine: Clock): SharedClock {
  /** Added to the machine's clock. */
  let offset = 0

  return {
    now: () => machine.now() + offset,
    monotonic: () => machine.monotonic(),
    after: (milliseconds, task) => machine.after(milliseconds, task),
    async measure(readDatabase) {
      const [sentAt, began] = [machine.now(), machine.monotonic()]
      const told = await readDatabase()
      if (machine.common) return
      const roundTrip = Math.ceil(machine.monotonic() - began)
      // The database read its clock at some moment of the round trip, and dropped the fraction of a millisecond.
      const [least, most] = [told - sentAt - roundTrip, told - sentAt + 1]
      // An offset that is still possible stays: a slow answer must not move the time.
      offset = Math.min(most, Math.max(least, offset))
    },
    findProblem() {
      if (Math.abs(offset) <= mostOffsetMs) return undefined
      const off = `${describe(Math.abs(offset))} ${offset > 0 ? 'behind' : 'ahead of'}`
      return new GatewayError(
        'clock-wrong',
        `The clock of this machine is ${off} the database's clock; at most ${describe(mostOffsetMs)} are allowed`,
        { offsetMs: offset },
      )
    },
  }
}

function describe(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000)
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`
}
