import { type Fields, parseJson, toFields } from '../fixtures/lib/json-rpc.ts'
import { textOf } from '../scenarios/mcp/raw.ts'
import type { ClientOptions, MatrixClient } from './client.ts'
import type { FeatureName, Pair } from './table.ts'

/** One pair, ready to be tried. */
export type Stage = {
  readonly pair: Pair
  readonly client: MatrixClient
  /** Another client of the same kind, gone after the cell. */
  connect(options: ClientOptions): Promise<MatrixClient>
  /** Asks again and again until there is an answer. */
  until<Found>(look: () => Found | undefined | Promise<Found | undefined>): Promise<Found>
}

/** Drives a client against a gateway and fails if the feature is not there. */
export type Drive = (stage: Stage) => Promise<void>
export type Drives<Names extends FeatureName> = Readonly<Record<Names, Drive>>

let keys = 0

/** Tells this cell's traces from those of every other. */
export function freshKey(): string {
  keys += 1
  return `key-${process.pid}-${keys}`
}

/** What the server has noticed so far, whoever made it do so. */
export async function noticedBy(client: MatrixClient): Promise<string[]> {
  const noticed = parseJson(textOf(await client.callTool({ name: 'noticed' })) ?? '')
  return Array.isArray(noticed) ? noticed.map(String) : []
}

/** What came to the server with a call. */
export async function inspectedBy(
  client: MatrixClient,
  meta: Fields = {},
): Promise<{ meta: Fields; capabilities: Fields }> {
  const seen = toFields(parseJson(textOf(await client.callTool({ name: 'inspect', _meta: meta })) ?? ''))
  return { meta: toFields(seen.meta), capabilities: toFields(seen.capabilities) }
}

export function itemsIn(result: Fields, member: string): Fields[] {
  const items = result[member]
  return Array.isArray(items) ? items.map(toFields) : []
}
