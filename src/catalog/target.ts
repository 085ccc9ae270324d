import type { CallMethod } from '../contract/permit.ts'
import type { Risk } from '../contract/risk.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { Drift } from '../definitions/definitions.ts'
import type { Mirror } from '../wire/mirrors.ts'
import { fromPublicUri, isPlainAddress, matchesTemplate } from './addresses.ts'
import type { OfferRef } from './merge.ts'
import { ownTools } from './own-tools.ts'
import type { ToolRef, View } from './view.ts'

/** What a call is for, whatever kind of thing that is. */
export type Target = {
  /** The name that rules are written for. */
  readonly publicName: string
  /** The server's own name or address. */
  readonly original: string
  readonly server: string
  readonly scope: ScopeKey
  readonly connection: string
  readonly risk: Risk
  /** What it says it does, as accepted. */
  readonly description?: string | undefined
  /** The arguments that HTTP repeats in headers, as the caller was shown them. */
  readonly mirrors?: readonly Mirror[]
  /** Of the definition that a call runs: what the server says now, accepted or not. */
  readonly hash?: string
  /** Set when nobody has accepted that definition. */
  readonly drifted?: Drift['kind'] | undefined
  /** From the accepted definition to that one, for people. */
  readonly difference?: Drift['difference']
  /** The arguments that the server as it is now wants repeated, where they are others. */
  readonly liveMirrors?: readonly Mirror[] | undefined
}

/** The target behind a name in a view; undefined where there is none. */
export function findTarget(view: View, method: CallMethod, name: string): Target | undefined {
  if (method === 'tools/call') return findTool(view, name)
  if (method === 'prompts/get') return toTarget(view.prompts.get(name))
  if (method === 'resources/read' || method === 'resources/subscribe') return findResource(view, name)
  return toTarget(view.prompts.get(name)) ?? toTarget(view.templates.find((template) => template.name === name))
}

export function findOwnTarget(method: CallMethod, name: string): Target | undefined {
  return method === 'tools/call' ? toToolTarget(ownTools.find((tool) => tool.name === name)) : undefined
}

function findTool(view: View, name: string): Target | undefined {
  return toToolTarget(view.tools.get(name))
}

function toToolTarget(tool: ToolRef | undefined): Target | undefined {
  if (!tool) return undefined
  const { name: original, mirrors, drift } = tool.definition
  return { ...tool, original, mirrors, ...(drift && { liveMirrors: drift.live.mirrors, difference: drift.difference }) }
}

/** Listed resources first, then what a template describes; a wrapped address names its server itself. */
function findResource(view: View, uri: string): Target | undefined {
  const listed = view.resources.get(uri)
  if (listed) return toTarget(listed)
  const wrapped = fromPublicUri(uri)
  const wanted = wrapped?.uri ?? uri
  const candidates = [...view.resources.values(), ...view.templates].filter(
    (ref) => wrapped === undefined || ref.server === wrapped.server,
  )
  const exact = wrapped && candidates.find((ref) => ref.offer.id === wanted)
  const fits = (ref: OfferRef) => isPlainAddress(wanted) && matchesTemplate(ref.offer.id, wanted)
  const found = exact ?? candidates.find(fits)
  return found && { ...read(found), original: wanted, publicName: wanted }
}

function toTarget(ref: OfferRef | undefined): Target | undefined {
  return ref && read(ref)
}

/** Looking at what a server offers changes nothing. */
function read({ publicName, server, scope, connection, offer }: OfferRef): Target {
  return { publicName, server, scope, connection, original: offer.id, risk: 'read' }
}
