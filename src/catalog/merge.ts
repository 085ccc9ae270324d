import type { JsonObject } from '../contract/json.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { idKeyOf, type JudgedOffering, type Offer, type OfferKind } from '../definitions/definitions.ts'
import { toPublicUri } from './addresses.ts'
import type { NamedServer } from './names.ts'
import type { NameOf } from './view.ts'

/** A resource, a template or a prompt as one view offers it. */
export type OfferRef = {
  /** Name or address for clients of this view. */
  readonly name: string
  /** The name that rules use in every view: the original address of a resource, the public name of a prompt. */
  readonly publicName: string
  readonly server: string
  readonly scope: ScopeKey
  readonly connection: string
  readonly offer: Offer
}

type Server = NamedServer & { readonly scope: ScopeKey; readonly connection: string }
type Included = readonly { readonly server: Server; readonly judged: JudgedOffering }[]
type MergeRules = {
  /** True for the view of a single server, in which everything keeps its original name. */
  readonly own: boolean
  readonly nameOf: NameOf
  includes(name: string): boolean
}

/** Prompts are named like tools. Addresses of resources change only if several servers have the same address. */
export function offersOf(
  included: Included,
  rules: MergeRules,
): { prompts: Map<string, OfferRef>; resources: Map<string, OfferRef>; templates: OfferRef[] } {
  return {
    prompts: toMap(
      refsOf(included, 'prompts', (server, id) => rules.nameOf({ server, tool: id, wanted: id })),
      rules,
    ),
    resources: toMap(toUnique(refsOf(included, 'resources', (_server, id) => id)), rules),
    templates: toUnique(refsOf(included, 'templates', (_server, id) => id)).filter((ref) =>
      rules.includes(ref.publicName),
    ),
  }
}

type ToName = (server: Server, id: string) => string | undefined

function refsOf(included: Included, kind: OfferKind, toName: ToName): OfferRef[] {
  return included.flatMap(({ server, judged }) =>
    judged[kind].flatMap((offer) => {
      const name = toName(server, offer.id)
      if (name === undefined) return []
      const { name: of, scope, connection } = server
      return [{ name, publicName: name, server: of, scope, connection, offer }]
    }),
  )
}

function toUnique(refs: readonly OfferRef[]): OfferRef[] {
  const count = new Map<string, number>()
  for (const { name } of refs) count.set(name, (count.get(name) ?? 0) + 1)
  return refs.map((ref) => {
    if ((count.get(ref.name) ?? 0) < 2) return ref
    return { ...ref, name: toPublicUri(ref.server, ref.offer.id) }
  })
}

function toMap(refs: readonly OfferRef[], rules: MergeRules): Map<string, OfferRef> {
  const map = new Map<string, OfferRef>()
  for (const ref of refs) {
    if (!rules.includes(ref.publicName)) continue
    const name = rules.own ? ref.offer.id : ref.name
    if (!map.has(name)) map.set(name, { ...ref, name })
  }
  return map
}

/** The definition for clients: the definition of the server with the name of this view. */
export function toOfferWire(kind: OfferKind, ref: OfferRef): JsonObject {
  return { ...ref.offer.value, [idKeyOf(kind)]: ref.name }
}
