import type { PinState } from '../contract/pin.ts'
import type { Definition, StoredPin } from '../storage/tables/pins.ts'
import { type LiveItem, stateOf } from './state.ts'

/** An entry whose pins apply to a server: its own entry, or one that it refines. */
export type PinLink = {
  readonly name: string
  readonly scope: string
  /** No definition is accepted automatically. */
  readonly strict: boolean
}

/** The combined result of all pins that apply to one item of a server. */
export type PinVerdict = {
  readonly state: PinState
  readonly hidden: boolean
  /** The accepted definition, from which the current one differs. */
  readonly accepted: Definition | undefined
  /** The scope whose pin decides. */
  readonly scope: string
}

type Opinion = PinVerdict & { readonly weight: number }

/**
 * The strictest state along the chain. A block applies to every refinement. If an administrator accepted the live
 * definition, the other entries do not object, because administrators may decide for all of them. An acceptance by
 * another user, and a baseline, apply only to their own scope.
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
  if (!strictest) throw new Error('The chain of a server is empty')
  return settled && strictest.state !== 'blocked' ? settled : strictest
}

function toOpinion(
  { scope, strict }: PinLink,
  pin: StoredPin | undefined,
  { live, isOwn }: { live: LiveItem | undefined; isOwn: boolean },
): Opinion {
  // An inherited entry that has no pin for the item objects only with strict pinning.
  const isSilent = pin === undefined && !isOwn && !strict
  const state = isSilent || (live === undefined && pin?.state !== 'blocked') ? 'accepted' : stateOf(pin, live)
  const hidden = state === 'suspicious' || state === 'blocked' || (state === 'new' && strict)
  return { state, hidden, accepted: pin?.accepted, scope, weight: weights[state] + (hidden ? weights.hidden : 0) }
}

const weights = { accepted: 0, new: 1, changed: 2, hidden: 3, suspicious: 4, blocked: 8 } as const
