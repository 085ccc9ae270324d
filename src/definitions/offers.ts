import type { JsonObject } from '../contract/json.ts'
import type { SetAside } from '../contract/tool.ts'
import { isObject, JsonError, parseJson } from '../lib/json.ts'
import { toVisible } from '../shared/visible.ts'
import type { JudgedList } from './judge.ts'
import { findSteering } from './steering.ts'

/** A resource, a template of resources or a prompt as its server defines it, found usable. */
export type Offer = {
  /** Its address, the pattern of its addresses, or its name. */
  readonly id: string
  /** The definition as it came. */
  readonly value: JsonObject
  /** Why its text seems to steer whoever reads it. */
  readonly steering: string | undefined
}

export type JudgedOffers = { readonly offers: readonly Offer[]; readonly setAside: readonly SetAside[] }

/** Under which key each kind has what it is known by. */
const idKeys = { resources: 'uri', templates: 'uriTemplate', prompts: 'name' } as const
export type OfferKind = keyof typeof idKeys
export const idKeyOf = (kind: OfferKind): string => idKeys[kind]

/** Everything that one connection offers, after judgement. */
export type JudgedOffering = JudgedList & Readonly<Record<OfferKind, readonly Offer[]>>

const maxBytes = 64 * 1024
const maxIdLength = 2048
/** Visible ASCII, as for tools: what hides or looks alike cannot pose as something else. */
const possibleId = /^[\x20-\x7e]+$/

/** Judges each alone: one that cannot be used is put aside with the reason, the others work. */
export function judgeOffers(kind: OfferKind, items: readonly Buffer[]): JudgedOffers {
  const offers = new Map<string, Offer>()
  const setAside: SetAside[] = []
  for (const item of items) {
    const judged = judgeOffer(kind, item)
    const problem = 'reason' in judged ? judged : undefined
    if (problem) setAside.push(problem)
    if (!('id' in judged)) continue
    if (offers.has(judged.id)) setAside.push({ name: toVisible(judged.id), reason: 'the server lists it twice' })
    else offers.set(judged.id, judged)
  }
  return { offers: [...offers.values()], setAside }
}

function judgeOffer(kind: OfferKind, item: Buffer): Offer | SetAside {
  if (item.length > maxBytes) return { name: '(unknown)', reason: `its definition has ${item.length} bytes` }
  const value = read(item)
  if (!isObject(value)) return { name: '(unknown)', reason: 'its definition is not a usable object' }
  const id = value[idKeys[kind]]
  if (typeof id !== 'string' || id.trim() === '') return { name: '(none)', reason: `it has no ${idKeys[kind]}` }
  if (id.length > maxIdLength || !possibleId.test(id)) {
    return { name: toVisible(id).slice(0, 120), reason: `its ${idKeys[kind]} is too long or has characters that hide` }
  }
  return { id, value, steering: findSteering(value) }
}

function read(item: Buffer): unknown {
  try {
    return parseJson(item)
  } catch (error) {
    if (error instanceof JsonError) return undefined
    throw error
  }
}
