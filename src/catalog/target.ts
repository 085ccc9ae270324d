import type { CallMethod } from '../contract/permit.ts'
import type { Risk } from '../contract/risk.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { Drift } from '../definitions/definitions.ts'
import type { InProcessTool } from '../servers/servers.ts'
import type { Mirror } from '../wire/mirrors.ts'
import { fromPublicUri, isPlainAddress, matchesTemplate } from './addresses.ts'
import type { OfferRef } from './merge.ts'
import type { ToolRef, View } from './view.ts'

/** The tool, prompt or resource that a call is for. */
export type Target = {
  /** The name that rules are written for. */
  readonly publicName: string
  /** The name or address that the server uses. */
  readonly original: string
  readonly server: string
  readonly scope: ScopeKey
  readonly connection: string
  readonly risk: Risk
  /** The accepted description. */
  readonly description?: string | undefined
  /** The arguments that are repeated in HTTP headers, according to the definition that the caller was shown. */
  readonly mirrors?: readonly Mirror[]
  /** Hash of the server's current definition, which a call would use, accepted or not. */
  readonly hash?: string
  /** Set if nobody has accepted the current definition. */
  readonly drifted?: Drift['kind'] | undefined
  /** The difference between the accepted and the current definition, as text. */
  readonly difference?: Drift['difference']
  /** The arguments that the server's current definition requires in HTTP headers; set if it differs from the accepted one. */
  readonly liveMirrors?: readonly Mirror[] | undefined
  /** Set for a tool that runs inside the gateway. */
  readonly inProcess?: InProcessTool
}

/** The target of a name in a view; undefined if the view does not contain it. */
export function findTarget(view: View, method: CallMethod, name: string): Target | undefined {
  if (method === 'tools/call') return findTool(view, name)
  if (method === 'prompts/get') return toTarget(view.prompts.get(name))
  if (method === 'resources/read' || method === 'resources/subscribe') return findResource(view, name)
  return toTarget(view.prompts.get(name)) ?? toTarget(view.templates.find((template) => template.name === name))
}

export function findInProcess(tools: readonly ToolRef[], method: CallMethod, name: string): Target | undefined {
  return method === 'tools/call' ? toToolTarget(tools.find((tool) => tool.name === name)) : undefined
}

function findTool(view: View, name: string): Target | undefined {
  return toToolTarget(view.tools.get(name))
}

function toToolTarget(tool: ToolRef | undefined): Target | undefined {
  if (!tool) return undefined
  const { name: original, mirrors, drift } = tool.definition
  return { ...tool, original, mirrors, ...(drift && { liveMirrors: drift.live.mirrors, difference: drift.difference }) }
}

/** First listed resources, then templates. An address with a server's name is searched only in that server. */
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
  return found && { ...toReadTarget(found), original: wanted, publicName: wanted }
}

function toTarget(ref: OfferRef | undefined): Target | undefined {
  return ref && toReadTarget(ref)
}

/** Prompts and resources only return data, so their risk is read. */
function toReadTarget({ publicName, server, scope, connection, offer }: OfferRef): Target {
  return { publicName, server, scope, connection, original: offer.id, risk: 'read' }
}
