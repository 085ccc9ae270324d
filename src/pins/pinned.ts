import type { JsonValue } from '../contract/json.ts'
import type { PinKind, PinState } from '../contract/pin.ts'
import type { SetAside } from '../contract/tool.ts'
import type { JudgedOffering, Offer, OfferKind } from '../definitions/definitions.ts'
import {
  type Drift,
  type JudgedItems,
  type JudgedTool,
  judgeTool,
  toDefinitionHash,
  toDifference,
} from '../definitions/definitions.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { toVisible } from '../shared/visible.ts'
import type { Definition } from '../storage/tables/pins.ts'
import type { PinVerdict } from './chain.ts'
import type { LiveServer, Pins } from './pins.ts'
import { type LiveItem, toItemKey, toValue } from './state.ts'

/** The usable offering of a connection, before pins are applied. */
export type Unpinned = JudgedOffering & { readonly list: JudgedItems; readonly instructions: Instructions | undefined }

/** The instructions of a server, and the reason why they seem to steer a model. */
export type Instructions = { readonly text: string; readonly steering: string | undefined }

/** The offering of a connection that agents may see. */
export type PinnedOffering = JudgedOffering & { readonly instructions: string | undefined }

const kinds: Readonly<Record<OfferKind, PinKind>> = { prompts: 'prompt', resources: 'resource', templates: 'template' }
const offerKinds: readonly OfferKind[] = ['prompts', 'resources', 'templates']

/** All items of a connection that have pins: every tool, and other items only if they are suspicious. */
export function toLiveItems(
  offering: Unpinned,
  steeringOf: (tool: JudgedTool) => string | undefined,
): Map<string, LiveItem> {
  const items = new Map<string, LiveItem>()
  for (const [index, tool] of offering.list.outcomes.entries()) {
    const source = offering.list.items[index]
    if ('reason' in tool || !source || items.has(toItemKey('tool', tool.name))) continue
    items.set(toItemKey('tool', tool.name), {
      kind: 'tool',
      name: tool.name,
      hash: tool.hash,
      // Depends on the current tools of other servers, so it is computed at each use.
      get reason() {
        return steeringOf(tool)
      },
      text: () => source.toString('utf8'),
    })
  }
  for (const item of otherItems(offering)) items.set(toItemKey(item.kind, item.name), item)
  return items
}

function otherItems({ instructions, ...offering }: Unpinned): LiveItem[] {
  const offers = offerKinds.flatMap((kind) =>
    offering[kind].flatMap(({ id, value, steering }) => toItem(kinds[kind], id, steering, value)),
  )
  if (!instructions) return offers
  return [...offers, ...toItem('instructions', '', instructions.steering, { instructions: instructions.text })]
}

function toItem(kind: PinKind, name: string, reason: string | undefined, value: JsonValue): LiveItem[] {
  if (reason === undefined) return []
  return [{ kind, name, reason, hash: toDefinitionHash(value), text: () => JSON.stringify(value) }]
}

/** Sets hidden items aside with the reason. A changed tool is offered with its accepted definition. */
export function applyPins(server: LiveServer, offering: Unpinned, pins: Pick<Pins, 'judge'>): PinnedOffering {
  const setAside: SetAside[] = [...offering.setAside]
  const look = (kind: PinKind, name: string): PinVerdict => {
    const item = server.items.get(toItemKey(kind, name))
    const verdict = pins.judge(server, kind, name)
    const { state } = verdict
    if (verdict.hidden) setAside.push({ name: toVisible(name) || kind, reason: toReason(state, item?.reason), state })
    return verdict
  }
  const tools = offering.tools.flatMap((tool): JudgedTool[] => {
    const { accepted, state, hidden } = look('tool', tool.name)
    if (hidden) return []
    if (state === 'accepted') return [tool]
    const now = server.items.get(toItemKey('tool', tool.name))
    const difference = () => toDifference(toValue(accepted?.text), toValue(now?.text()))
    if (state === 'new') return [{ ...tool, drift: { kind: 'new', live: tool, difference } }]
    return asAccepted(accepted, { kind: 'changed', live: tool, difference })
  })
  const shown = (kind: OfferKind) => offering[kind].filter((offer: Offer) => !look(kinds[kind], offer.id).hidden)
  const { instructions } = offering
  return {
    tools,
    prompts: shown('prompts'),
    resources: shown('resources'),
    templates: shown('templates'),
    instructions: instructions && !look('instructions', '').hidden ? instructions.text : undefined,
    setAside,
  }
}

function toReason(state: PinState, reason: string | undefined): string {
  if (state === 'suspicious') return `${reason ?? 'its text seems to steer a model'}; a person must accept it`
  return state === 'blocked' ? 'a person blocked it' : 'it is not accepted yet'
}

const acceptedTools = new WeakMap<Definition, JudgedTool | SetAside>()

/** The accepted tool, without the output schema if that has changed. */
function asAccepted(definition: Definition | undefined, drift: Drift): JudgedTool[] {
  if (!definition) return []
  const accepted = acceptedTools.get(definition) ?? judgeTool(Buffer.from(definition.text))
  acceptedTools.set(definition, accepted)
  if ('reason' in accepted) return []
  const isUnchanged = isSame(accepted.outputSchema, drift.live.outputSchema)
  return [{ ...accepted, ...(!isUnchanged && { outputSchema: undefined }), drift }]
}

function isSame(a: JudgedTool['outputSchema'], b: JudgedTool['outputSchema']): boolean {
  return toCanonicalText(a ?? null) === toCanonicalText(b ?? null)
}
