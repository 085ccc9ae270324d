import type { PinState } from '../contract/pin.ts'
import type { Definition, StoredPin } from '../storage/tables/pins.ts'
import { type LiveItem, stateOf } from './state.ts'

/** One entry of a server that has pins: its own, or one that it refines. */
export type PinLink = {
  readonly name: string
  readonly scope: string
  /** Nothing is accepted by itself. */
  readonly strict: boolean
}

/** What the pins of a server and of the entries that it refines say together of one thing. */
export type PinVerdict = {
  readonly state: PinState
  readonly hidden: boolean
  /** The accepted definition that a changed one differs from. */
  readonly accepted: Definition | undefined
  /** The scope whose pin decides. */
  readonly scope: string
}

type Opinion = PinVerdict & { readonly weight: number }

/**
 * The strictest answer along the chain. A block applies to every refinement. An administrator's acceptance of the live
 * definition settles the other links, because administrators may decide for all of them; anybody else's acceptance, and
 * a baseline, count for their own scope only.
 */
export function judgeAlong(
  chain: readonly PinLink[],
  pinOf: (link: PinLink) => StoredPin | undefined,
  live: LiveItem | undefined,
): PinVerdict {
  let strictest: Opinion | undefined
  let settled: PinVerdict | undefined
  for (const [index, link] of chain.entries()) {
    const pin = pinOf(link)
    const opinion = toOpinion(link, pin, { live, isOwn: index === chain.length - 1 })
    if (!strictest || opinion.weight > strictest.weight) strictest = opinion
    if (opinion.state === 'accepted' && pin?.byAdministrator && pin.accepted?.hash === live?.hash) settled = opinion
  }
  if (!strictest) throw new Error('A server has at least one link')
  return settled && strictest.state !== 'blocked' ? settled : strictest
}

function toOpinion(
  { scope, strict }: PinLink,
  pin: StoredPin | undefined,
  { live, isOwn }: { live: LiveItem | undefined; isOwn: boolean },
): Opinion {
  // An inherited entry that never saw the thing objects only where everything has to be accepted.
  const isSilent = pin === undefined && !isOwn && !strict
  const state = isSilent || (live === undefined && pin?.state !== 'blocked') ? 'accepted' : stateOf(pin, live)
  const hidden = state === 'suspicious' || state === 'blocked' || (state === 'new' && strict)
  return { state, hidden, accepted: pin?.accepted, scope, weight: weights[state] + (hidden ? weights.hidden : 0) }
}

const weights = { accepted: 0, new: 1, changed: 2, hidden: 3, suspicious: 4, blocked: 8 } as const
