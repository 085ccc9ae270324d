import { createHash } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import type { JsonValue } from '../contract/json.ts'
import type { Pin, PinDecision, PinDetail, PinKind, PinState } from '../contract/pin.ts'
import type { JudgedTool } from '../definitions/definitions.ts'
import { toDifference } from '../definitions/definitions.ts'
import { toIso } from '../lib/clock.ts'
import { parseJson } from '../lib/json.ts'
import { toVisible } from '../shared/visible.ts'
import type { Definition, StoredPin } from '../storage/tables/pins.ts'

/** One item with the current definition of its server. */
export type LiveItem = {
  readonly kind: PinKind
  readonly name: string
  readonly hash: string
  /** The reason why its text seems to steer a model. */
  readonly reason: string | undefined
  readonly tool?: JudgedTool
  text(): string
}

/** The key contains the kind, because a tool and a prompt of one server may have the same name. */
export const toItemKey = (kind: PinKind, name: string): string => `${kind} ${name}`

/** `decidedBy` of pins that were accepted automatically. */
export const baselineBy = 'baseline'

/** A definition that a person accepted stays accepted even if its text is suspicious. A baseline does not. */
export function stateOf(
  pin: Pick<StoredPin, 'state' | 'accepted' | 'baseline'> | undefined,
  live: Pick<LiveItem, 'hash' | 'reason' | 'kind'> | undefined,
): PinState {
  if (pin?.state === 'blocked') return 'blocked'
  const isSame = pin?.accepted !== undefined && (live === undefined || live.hash === pin.accepted.hash)
  if (isSame && !(pin.baseline && live?.reason !== undefined)) return 'accepted'
  if (live?.reason !== undefined) return 'suspicious'
  if (live !== undefined && live.kind !== 'tool') return 'accepted'
  return pin?.accepted === undefined ? 'new' : 'changed'
}

export function toWaiting(
  key: Pick<StoredPin, 'server' | 'scope' | 'kind' | 'name'>,
  seen: StoredPin['seen'],
): StoredPin {
  const undecided = { accepted: undefined, decidedBy: undefined, decidedAt: undefined }
  return { ...key, ...undecided, baseline: false, byAdministrator: false, state: 'waiting', seen }
}

/** The current definition, if it is the one that the person reviewed; otherwise throws `pin-changed`. */
export function reviewedDefinition(pin: StoredPin, item: LiveItem | undefined, { hash }: PinDecision): Definition {
  const live = item ? { hash: item.hash, text: item.text() } : (pin.seen ?? pin.accepted)
  if (live?.hash === hash) return live
  throw new GatewayError('pin-changed', `${toVisible(pin.name)} of ${pin.server} has changed since you reviewed it`, {
    live: live?.hash,
  })
}

/** A short id for URLs that stays the same after a restart. */
export function toPinId({ server, scope, kind, name }: Pick<StoredPin, 'server' | 'scope' | 'kind' | 'name'>): string {
  const text = JSON.stringify([server, scope, kind, name])
  return `pin_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
}

export function toDigest(pins: readonly StoredPin[]): string {
  const lines = pins.map(({ kind, name, accepted }) => JSON.stringify([kind, name, accepted?.hash])).sort()
  return createHash('sha256').update(lines.join('\n')).digest('hex')
}

export function toPin(pin: StoredPin, item: LiveItem | undefined, listed: boolean): Pin {
  const state = stateOf(pin, item ?? (pin.seen && { hash: pin.seen.hash, reason: undefined, kind: pin.kind }))
  const live = item ?? pin.seen
  return {
    id: toPinId(pin),
    server: pin.server,
    scope: pin.scope,
    kind: pin.kind,
    name: toVisible(pin.name),
    state,
    ...(state === 'suspicious' && item?.reason !== undefined && { reason: item.reason }),
    ...(pin.accepted && {
      accepted: {
        hash: pin.accepted.hash,
        by: pin.baseline ? baselineBy : (pin.decidedBy ?? ''),
        at: toIso(pin.decidedAt ?? 0),
      },
    }),
    ...(live && {
      live: { hash: live.hash, listed, ...(pin.seen?.hash === live.hash && { seenAt: toIso(pin.seen.at) }) },
    }),
    ...(pin.decidedBy !== undefined && { decidedBy: pin.decidedBy }),
    ...(pin.decidedAt !== undefined && { decidedAt: toIso(pin.decidedAt) }),
  }
}

export function toDetail(pin: StoredPin, item: LiveItem | undefined): PinDetail {
  const accepted = toValue(pin.accepted?.text)
  const live = toValue(item?.text() ?? pin.seen?.text)
  return {
    ...toPin(pin, item, item !== undefined),
    difference: toDifference(accepted, live ?? accepted),
    ...(accepted !== undefined && { acceptedDefinition: accepted }),
    ...(live !== undefined && { liveDefinition: live }),
  }
}

/** Parses the JSON text in which a definition is stored. */
export function toValue(text: string | undefined): JsonValue | undefined {
  return text === undefined ? undefined : parseJson(text)
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
