import type { JsonObject } from '../contract/json.ts'
import type { SetAside } from '../contract/tool.ts'
import { isObject, JsonError, parseJson } from '../lib/json.ts'
import { toVisible } from '../shared/visible.ts'
import type { JudgedList } from './judge.ts'
import { findSteering } from './steering.ts'

/** A usable resource, resource template or prompt, as its server defines it. */
export type Offer = {
  /** The URI, the URI template or the name. */
  readonly id: string
  /** The unchanged definition. */
  readonly value: JsonObject
  /** The reason why its text seems to steer a model. */
  readonly steering: string | undefined
}

export type JudgedOffers = { readonly offers: readonly Offer[]; readonly setAside: readonly SetAside[] }

/** The key of the id for each kind. */
const idKeys = { resources: 'uri', templates: 'uriTemplate', prompts: 'name' } as const
export type OfferKind = keyof typeof idKeys
export const idKeyOf = (kind: OfferKind): string => idKeys[kind]

/** Everything that one connection offers, after it was judged. */
export type JudgedOffering = JudgedList & Readonly<Record<OfferKind, readonly Offer[]>>

const maxBytes = 64 * 1024
const maxIdLength = 2048
/** Visible ASCII only, as for tools: look-alike or invisible characters could imitate another id. */
const possibleId = /^[\x20-\x7e]+$/

/** Judges each offer separately. An unusable offer is set aside with the reason, and the others stay usable. */
export function judgeOffers(kind: OfferKind, items: readonly Buffer[]): JudgedOffers {
  const offers = new Map<string, Offer>()
  const setAside: SetAside[] = []
  for (const item of items) {
    const judged = judgeOffer(kind, item)
    const problem = 'reason' in judged ? judged : undefined
    if (problem) setAside.push(problem)
    if (!('id' in judged)) continue
    if (offers.has(judged.id)) setAside.push({ name: toVisible(judged.id), reason: 'the server lists this id twice' })
    else offers.set(judged.id, judged)
  }
  return { offers: [...offers.values()], setAside }
}

function judgeOffer(kind: OfferKind, item: Buffer): Offer | SetAside {
  if (item.length > maxBytes)
    return { name: '(unknown)', reason: `its definition has ${item.length} bytes, more than ${maxBytes}` }
  const value = read(item)
  if (!isObject(value)) return { name: '(unknown)', reason: 'its definition is not a valid object' }
  const id = value[idKeys[kind]]
  if (typeof id !== 'string' || id.trim() === '') return { name: '(none)', reason: `it has no ${idKeys[kind]}` }
  if (id.length > maxIdLength || !possibleId.test(id)) {
    return {
      name: toVisible(id).slice(0, 120),
      reason: `its ${idKeys[kind]} is too long or contains characters that are not visible ASCII`,
    }
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
