import type { Listing, View } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { ListKind } from '../servers/servers.ts'
import { type Answer, createAnswer } from '../wire/answer.ts'

/** The lists of the protocol, and the key of their items. */
const lists: Readonly<Record<string, { readonly kind: ListKind; readonly member: string }>> = {
  'tools/list': { kind: 'tools', member: 'tools' },
  'prompts/list': { kind: 'prompts', member: 'prompts' },
  'resources/list': { kind: 'resources', member: 'resources' },
  'resources/templates/list': { kind: 'templates', member: 'resourceTemplates' },
}

export function isListMethod(method: string): boolean {
  return Object.hasOwn(lists, method)
}

/** One page of a list, from the serialised pages of the view. */
export function listPage(view: View, method: string, params: JsonObject): Answer {
  const list = lists[method]
  if (!list) throw new GatewayError('method-not-found', `${method.slice(0, 100)} is not a list`)
  const listing = view.lists[list.kind]
  const index = pageIndex(listing, params.cursor)
  const page = listing.pages[index]
  if (!page) throw new GatewayError('arguments-invalid', 'The cursor is no longer valid: list again from the start')
  const next = index + 1 < listing.pages.length ? `,"nextCursor":"${toCursor(listing, index + 1)}"` : ''
  const opening = `{"${list.member}":`
  const bytes = Buffer.concat([Buffer.from(opening), page, Buffer.from(`${next}}`)])
  // The members are passed on, because scanning a thousand tools again would cost more than writing them.
  const written = { key: list.member, keyStart: 1, start: opening.length, end: opening.length + page.length }
  return createAnswer('result', bytes, [written])
}

/** The cursor contains the hash of the view, so pages of different states are never mixed. */
function toCursor(listing: Listing, index: number): string {
  return `${listing.hash.slice(0, 16)}-${index}`
}

function pageIndex(listing: Listing, cursor: unknown): number {
  if (cursor === undefined || cursor === null) return 0
  const [hash, index] = typeof cursor === 'string' ? cursor.split('-') : []
  return hash === listing.hash.slice(0, 16) ? Number(index) : -1
}
