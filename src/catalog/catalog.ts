import { type ConfigStore, type EffectiveConfig, isTrusted, type PinnedEntry } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { CallMethod } from '../contract/permit.ts'
import type { Principal } from '../contract/principal.ts'
import type { Risk } from '../contract/risk.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { SetAside, Tool } from '../contract/tool.ts'
import {
  driftWords,
  findForeignName,
  findSteering,
  type JudgedItems,
  type JudgedOffers,
  type JudgedTool,
  judgeOffers,
  judgeTools,
  listToolNames,
  type OfferKind,
  type ToolNames,
} from '../definitions/definitions.ts'
import { matchesAny } from '../lib/glob.ts'
import {
  applyPins,
  type Instructions,
  type LiveServer,
  type PinLink,
  type PinnedOffering,
  type Pins,
  toLiveItems,
  type Unpinned,
} from '../pins/pins.ts'
import type { KnownTool } from '../policy/policy.ts'
import { noLists, type RawList, type RawLists, type Servers } from '../servers/servers.ts'
import type { ServerFacts } from '../wire/codec.ts'
import { toToolRefs } from './in-process.ts'
import { nameAlone, sharedSpace } from './name-table.ts'
import { type Names, toWanted, type WantedName } from './names.ts'
import { findInProcess, findTarget, type Target } from './target.ts'
import {
  buildView,
  findToolset,
  type OfferingServer,
  offeredTools,
  toTool,
  type View,
  type ViewSelector,
} from './view.ts'

export { inFormOf } from './addresses.ts'
export { createIntroduction, type Introduction } from './introduction.ts'
export { createNames, createNamesRemover, type Names } from './names.ts'
export type { Target } from './target.ts'
export { type Listing, type ToolRef, toTool, type View, type ViewSelector } from './view.ts'

export type Catalog = {
  /** The tools in the view of a principal, without the gateway's own tools. */
  listTools(principal: Principal, selector: ViewSelector): Tool[]
  /** A tool in the view of a principal, with the facts that rules use. */
  findTool(principal: Principal, name: string): KnownTool | undefined
  /** The tools in the view of a principal, with the facts that grants use. */
  listFacts(principal: Principal): { name: string; risk: Risk; hash: string }[]
  /** Everything that a principal may see at one address. Throws if the toolset or server does not exist. */
  view(principal: Principal, selector: ViewSelector): View
  /** The current target of a name. Every call resolves again, because the catalog may have changed since the client listed it. */
  resolve(principal: Principal, selector: ViewSelector, method: CallMethod, name: string): Target | undefined
  /** The offers of a connection after the checks and pins, before the selection for a principal. */
  ofConnection(id: string): PinnedOffering
  /** Whether the lists of a connection are known. False for a disconnected server. */
  isListed(id: string): boolean
  /** Must be called when the lists of a connection have changed or were removed. */
  observe(id: string): void
  /** The tools that one configured server offers, after the selection in its definition. */
  offered(server: OfferingServer, connection: string): { tools: Tool[]; setAside: SetAside[] }
  /** The tools that a definition would offer, for tests without saving. */
  preview(server: string, definition: ServerDefinition, list: RawList): { tools: Tool[]; setAside: SetAside[] }
  /** Must be called when something that views depend on has changed. */
  invalidate(): void
  /** Stores public names for the offers in new lists of a connection, before the lists are used. */
  prepare(connection: string, lists: RawLists): Promise<void>
  /** Stores public names for all offers without one. Must be called after a change of the configuration. */
  nameAll(): Promise<void>
  /** A lookup of the public names of configured tools, by server, scope and the tool's own name. */
  publicNames(): (tool: { server: string; scope: string; name: string }) => string | undefined
}

const maxViews = 500
/** Longer instructions are never shown, so the rest is not checked either. */
const maxInstructions = 64 * 1024
const noOffers: JudgedOffers = { offers: [], setAside: [] }

export type CatalogParts = {
  readonly config: ConfigStore
  readonly servers: Pick<Servers, 'list' | 'find' | 'lists' | 'facts' | 'attached'>
  readonly pins: Pick<Pins, 'judge' | 'observe' | 'leave'>
  readonly names: Pick<Names, 'find' | 'assign'>
  /** Tools that had no public name have one now. */
  onNamed(): void
}

export function createCatalog(parts: CatalogParts): Catalog {
  /** The last checked list of each connection. The next list usually differs in few tools, so results are reused. */
  const judged = new Map<string, { readonly list: RawList; readonly items: JudgedItems }>()
  const judgedOffers = new WeakMap<RawList, JudgedOffers>()
  const judgedInstructions = new WeakMap<ServerFacts, Instructions>()
  const offerings = new Map<string, { readonly live: LiveServer; readonly pinned: PinnedOffering }>()
  const views = new Map<string, View>()
  let names: ToolNames | undefined

  function judge(id: string, list: RawList): JudgedItems {
    const known = judged.get(id)
    if (known?.list === list) return known.items
    const items = judgeTools(list.items, known?.items)
    judged.set(id, { list, items })
    return items
  }

  function judgeOther(kind: OfferKind, list: RawList): JudgedOffers {
    if (list.items.length === 0) return noOffers
    const known = judgedOffers.get(list) ?? judgeOffers(kind, list.items)
    judgedOffers.set(list, known)
    return known
  }

  function judgeInstructions(facts: ServerFacts | undefined): Instructions | undefined {
    if (!facts?.instructions) return undefined
    const known = judgedInstructions.get(facts)
    if (known) return known
    const text = facts.instructions.slice(0, maxInstructions)
    const instructions = { text, steering: findSteering(text) }
    judgedInstructions.set(facts, instructions)
    return instructions
  }

  function readOffering(id: string): Unpinned {
    const lists = parts.servers.lists(id) ?? noLists
    const list = judge(id, lists.tools)
    const resources = judgeOther('resources', lists.resources)
    const templates = judgeOther('templates', lists.templates)
    const prompts = judgeOther('prompts', lists.prompts)
    return {
      list,
      tools: list.tools,
      resources: resources.offers,
      templates: templates.offers,
      prompts: prompts.offers,
      setAside: [...list.setAside, ...resources.setAside, ...templates.setAside, ...prompts.setAside],
      instructions: judgeInstructions(parts.servers.facts(id)),
    }
  }

  const inProcess = () => parts.servers.attached().flatMap(toToolRefs)

  const ofConnection = (id: string): PinnedOffering => judgementOf(id).pinned

  function judgementOf(id: string): { readonly live: LiveServer; readonly pinned: PinnedOffering } {
    const known = offerings.get(id)
    if (known) return known
    const offering = readOffering(id)
    const live = toLiveServer(id, offering)
    const judgement = { live, pinned: applyPins(live, offering, parts.pins) }
    offerings.set(id, judgement)
    return judgement
  }

  /** A resource can be blocked or suspicious although a template that matches its address is offered. */
  function isHidden(method: CallMethod, { connection, original }: Target): boolean {
    if (method !== 'resources/read' && method !== 'resources/subscribe') return false
    return parts.pins.judge(judgementOf(connection).live, 'resource', original).hidden
  }

  function toLiveServer(id: string, offering: Unpinned): LiveServer {
    const { name, scope } = parts.servers.find(id) ?? { name: id, scope: 'global' }
    const spec = parts.config.connections().find((candidate) => candidate.id === id)
    const chain = toPinChain(name, spec?.lineage ?? [{ scope, pinning: undefined }])
    const steeringOf = (tool: JudgedTool) => tool.steering ?? findForeignName(toolNames(), { name, scope }, tool)
    return { connection: id, name, scope, chain, items: toLiveItems(offering, steeringOf) }
  }

  /** A later entry can be stricter than the entry that it refines, but not less strict. */
  function toPinChain(name: string, lineage: readonly PinnedEntry[]): PinLink[] {
    const config = parts.config.current()
    let strict = false
    return lineage.map(({ scope, pinning }, index) => {
      // Only the first entry can be exempt from the global `strict`, in a scope of administrators. Refinements inherit `strict`.
      const isExempt = index > 0 || (pinning === 'baseline' && isTrusted(config, scope))
      strict ||= pinning === 'strict' || (config.pinning === 'strict' && !isExempt)
      return { name, scope, strict }
    })
  }

  function toolNames(): ToolNames {
    const specs = new Map(parts.config.connections().map((spec) => [spec.id, spec]))
    names ??= listToolNames(
      parts.servers.list().map(({ id, name, scope }) => ({
        server: { name, scope },
        tools: judge(id, (parts.servers.lists(id) ?? noLists).tools).tools,
        publicNameOf(tool) {
          const server = specs.get(id)
          return server && parts.names.find({ server, tool, wanted: tool })
        },
      })),
    )
    return names
  }

  function observe(id: string): void {
    invalidate()
    if (parts.servers.lists(id)) return parts.pins.observe(toLiveServer(id, readOffering(id)))
    judged.delete(id)
    const isGone = !parts.config.connections().some((spec) => spec.id === id)
    parts.pins.leave(id, isGone)
  }

  function invalidate(): void {
    names = undefined
    offerings.clear()
    views.clear()
  }

  function view(principal: Principal, selector: ViewSelector): View {
    const effective = parts.config.effective(principal)
    const key = `${effective.key} ${selector.kind} ${selector.kind === 'all' ? '' : selector.name}`
    const known = views.get(key)
    if (known) return known
    checkSelector(effective, selector)
    const config = parts.config.current()
    const unnamed: WantedName[] = []
    const nameOf = (wanted: WantedName) => parts.names.find(wanted) ?? void unnamed.push(wanted)
    const built = buildView({ key, effective, selector, config, ofConnection, nameOf, inProcess: inProcess() })
    if (unnamed.length > 0) void nameMissing(unnamed)
    for (const old of views.keys()) {
      if (views.size < maxViews) break
      views.delete(old)
    }
    views.set(key, built)
    return built
  }

  /** Only if names were added: otherwise a tool that cannot have a name would build views without end. */
  async function nameMissing(wanted: readonly WantedName[]): Promise<void> {
    const missing = wanted.filter((each) => parts.names.find(each) === undefined)
    await parts.names.assign(missing)
    if (missing.every((each) => parts.names.find(each) === undefined)) return
    invalidate()
    parts.onNamed()
  }

  /** The tools and prompts of connected servers under every definition in force. `of`: only this connection, with these lists. */
  function listWanted(of?: { readonly id: string; readonly lists: RawLists }): WantedName[] {
    return parts.config.servers().flatMap((server) => {
      const { connection: id, definition } = server
      const lists = of === undefined ? parts.servers.lists(id) : of.id === id ? of.lists : undefined
      if (!lists || !definition.enabled) return []
      const { include, exclude } = definition.tools
      const tools = judge(id, lists.tools).tools.filter(
        ({ name: tool }) => matchesAny(include, tool) && !matchesAny(exclude, tool),
      )
      const prompts = judgeOther('prompts', lists.prompts).offers
      return [
        ...tools.map(({ name: tool }) => ({ server, tool, wanted: toWanted(definition, tool) })),
        ...prompts.map((prompt) => ({ server, tool: prompt.id, wanted: prompt.id })),
      ]
    })
  }

  function publicNames(): (pin: { server: string; scope: string; name: string }) => string | undefined {
    const specs = new Map(parts.config.connections().map((spec) => [`${spec.name} ${spec.scope}`, spec]))
    return ({ server: of, scope, name: tool }) => {
      const server = specs.get(`${of} ${scope}`)
      return server && parts.names.find({ server, tool, wanted: toWanted(server.definition, tool) })
    }
  }

  function resolve(principal: Principal, selector: ViewSelector, method: CallMethod, name: string): Target | undefined {
    const found = findTarget(view(principal, selector), method, name)
    if (found && isHidden(method, found)) return undefined
    // The gateway's own tools are also found in an empty view, so that the rest of an earlier cut result can be read.
    return found ?? (selector.kind === 'server' ? undefined : findInProcess(inProcess(), method, name))
  }

  function checkSelector(effective: EffectiveConfig, selector: ViewSelector): void {
    if (selector.kind === 'toolset' && !findToolset(parts.config.current(), selector.name)) {
      throw new GatewayError('toolset-not-found', `No toolset is named ${selector.name}`)
    }
    if (selector.kind === 'server' && !effective.servers.get(selector.name)?.definition.enabled) {
      throw new GatewayError('server-not-found', `No server is named ${selector.name}`)
    }
  }

  return {
    listTools: (principal, selector) =>
      [...view(principal, selector).tools.values()].filter((tool) => !tool.inProcess).map(toTool),
    findTool(principal, name) {
      const tool = view(principal, { kind: 'all' }).tools.get(name)
      if (!tool) return undefined
      const { publicName, server, risk, riskFrom, drifted } = tool
      return { name: publicName, server, risk, riskFrom, drifted: drifted && driftWords[drifted] }
    },
    listFacts: (principal) =>
      [...view(principal, { kind: 'all' }).tools.values()].map(({ publicName, risk, hash }) => ({
        name: publicName,
        risk,
        hash,
      })),
    view,
    resolve,
    ofConnection,
    isListed: (id) => parts.servers.lists(id) !== undefined,
    observe,
    offered(server, connection) {
      const { describe } = parts.config.current()
      const naming = { nameOf: parts.names.find, describe }
      const { tools, setAside } = offeredTools(server, ofConnection(connection).tools, naming)
      return { tools: tools.map(toTool), setAside }
    },
    preview(server, definition, list) {
      const { naming, describe } = parts.config.current()
      const { tools, setAside } = judgeTools(list.items)
      const plain = tools.filter(({ steering }) => steering === undefined)
      const steering = tools.flatMap(({ name, steering: reason }): SetAside[] =>
        reason === undefined ? [] : [{ name, reason, state: 'suspicious' }],
      )
      const key = (tool: string, wanted: string) => ({ space: sharedSpace, server, tool, wanted })
      const keys = plain.map((tool) => key(tool.name, toWanted(definition, tool.name)))
      const nameIn = nameAlone(naming, keys)
      const tried = { name: server, scope: 'global', connection: server, definition, lineage: [] } as const
      const nameOf = ({ tool, wanted }: WantedName) => nameIn(key(tool, wanted))
      const offered = offeredTools(tried, plain, { nameOf, describe })
      return { tools: offered.tools.map(toTool), setAside: [...setAside, ...steering, ...offered.setAside] }
    },
    invalidate,
    prepare: (id, lists) => parts.names.assign(listWanted({ id, lists })),
    nameAll: () => nameMissing(listWanted()),
    publicNames,
  }
}
