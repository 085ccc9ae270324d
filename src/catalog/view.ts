import { createHash } from 'node:crypto'
import type { EffectiveConfig, PinnedEntry } from '../config/config.ts'
import type { Config, Toolset } from '../contract/config.ts'
import type { JsonObject } from '../contract/json.ts'
import { type Risk, riskOrder } from '../contract/risk.ts'
import { type ScopeKey, scopeKinds, toScope } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { SetAside, Tool } from '../contract/tool.ts'
import type { Drift, JudgedOffering, JudgedTool } from '../definitions/definitions.ts'
import { matchesAny } from '../lib/glob.ts'
import { type JudgedRisk, riskOf } from '../policy/policy.ts'
import type { InProcessTool, ListKind } from '../servers/servers.ts'
import { type OfferRef, offersOf, toOfferWire } from './merge.ts'
import { toWanted, type WantedName } from './names.ts'
import { toPublicDescription } from './naming.ts'

/** Which view an address has: all servers, a toolset, or one server with its original names. */
export type ViewSelector =
  | { readonly kind: 'all' }
  | { readonly kind: 'toolset'; readonly name: string }
  | { readonly kind: 'server'; readonly name: string }

/** A tool as one view offers it. */
export type ToolRef = {
  readonly name: string
  readonly description: string
  readonly server: string
  readonly scope: ScopeKey
  readonly connection: string
  readonly risk: Risk
  readonly riskFrom: Tool['riskFrom']
  readonly definition: JudgedTool
  /** The name that rules use in every view. */
  readonly publicName: string
  /** Hash of the server's current definition. */
  readonly hash: string
  readonly drifted: Drift['kind'] | undefined
  /** Set for a tool that runs inside the gateway. */
  readonly inProcess?: InProcessTool
}

/** The offers at one address. Principals with the same effective settings share one view. */
export type View = {
  readonly key: string
  readonly servers: readonly { readonly name: string; readonly connection: string }[]
  readonly tools: ReadonlyMap<string, ToolRef>
  readonly prompts: ReadonlyMap<string, OfferRef>
  readonly resources: ReadonlyMap<string, OfferRef>
  readonly templates: readonly OfferRef[]
  readonly setAside: readonly (SetAside & { readonly server: string })[]
  readonly lists: Readonly<Record<ListKind, Listing>>
}

/** One list for clients. */
export type Listing = {
  /** Changes only if the content of the list changes. */
  readonly hash: string
  /** The pages, each as a JSON array. */
  readonly pages: readonly Buffer[]
}

/** Large, because some clients never request a second page. */
const itemsPerPage = 2000

export type OfferingServer = {
  readonly name: string
  readonly scope: ScopeKey
  readonly connection: string
  readonly definition: ServerDefinition
  readonly lineage: readonly PinnedEntry[]
}

export type NameOf = (wanted: WantedName) => string | undefined
type Naming = { readonly nameOf: NameOf; readonly describe: string }

export function buildView(parts: {
  key: string
  effective: EffectiveConfig
  selector: ViewSelector
  config: Config
  ofConnection(id: string): JudgedOffering
  readonly nameOf: NameOf
  /** Tools that run inside the gateway. */
  readonly inProcess: readonly ToolRef[]
}): View {
  const { selector, config, inProcess, nameOf } = parts
  const own = selector.kind === 'server'
  const tools = new Map<string, ToolRef>()
  const setAside: (SetAside & { server: string })[] = []
  const included: { server: OfferingServer; judged: JudgedOffering }[] = []
  const ranks = new Map<string, number>()
  for (const server of [...parts.effective.servers.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (!server.definition.enabled || !includesServer(selector, server.name, config)) continue
    const judged = parts.ofConnection(server.connection)
    included.push({ server, judged })
    const offered = offeredTools(server, judged.tools, { nameOf, describe: config.describe })
    for (const aside of [...judged.setAside, ...offered.setAside]) setAside.push({ ...aside, server: server.name })
    for (const tool of offered.tools) {
      if (!includesTool(selector, tool.publicName, config)) continue
      const name = own ? tool.definition.name : tool.publicName
      const earlier = tools.get(name)
      const taken = earlier !== undefined || (!own && inProcess.some((each) => each.name === name))
      const loser = taken && earlier && rankOf(server) < (ranks.get(name) ?? 0) ? earlier.server : server.name
      if (taken) setAside.push({ name, reason: 'another tool already has this public name', server: loser })
      if (taken && (earlier === undefined || loser === server.name)) continue
      tools.set(name, { ...tool, name })
      ranks.set(name, rankOf(server))
    }
  }
  const { prompts, resources, templates } = offersOf(included, {
    own,
    nameOf,
    includes: (name) => includesTool(selector, name, config),
  })
  const empty = tools.size === 0 && prompts.size === 0 && resources.size === 0 && templates.length === 0
  // The address of one server offers only that server's names. An empty view offers no tools that continue other calls.
  if (!own && !empty) for (const tool of inProcess) tools.set(tool.name, tool)
  const lists = {
    tools: toListing([...tools.values()].map(toWire)),
    prompts: toListing([...prompts.values()].map((offer) => toOfferWire('prompts', offer))),
    resources: toListing([...resources.values()].map((offer) => toOfferWire('resources', offer))),
    templates: toListing(templates.map((offer) => toOfferWire('templates', offer))),
  }
  const servers = included.map(({ server: { name, connection } }) => ({ name, connection }))
  return { key: parts.key, servers, tools, prompts, resources, templates, setAside, lists }
}

/** Two scopes of members can have one name. The earlier scope keeps it, so that nobody can take the name of a project's tool. */
function rankOf({ lineage, scope }: OfferingServer): number {
  return scopeKinds.indexOf(toScope(lineage[0]?.scope ?? scope).kind)
}

/** The tools of one server after the selection and the overrides of its definition, with their risk. */
export function offeredTools(
  server: OfferingServer,
  judged: readonly JudgedTool[],
  { nameOf, describe }: Naming,
): { tools: ToolRef[]; setAside: SetAside[] } {
  const { definition } = server
  const { include, exclude, override } = definition.tools
  const changeOf = (tool: JudgedTool) => (Object.hasOwn(override, tool.name) ? override[tool.name] : undefined)
  const chosen = judged.filter(({ name }) => matchesAny(include, name) && !matchesAny(exclude, name))
  const tools: ToolRef[] = []
  const setAside: SetAside[] = []
  for (const tool of chosen) {
    const change = changeOf(tool)
    const name = nameOf({ server, tool: tool.name, wanted: toWanted(definition, tool.name) })
    if (name === undefined) {
      setAside.push({ name: tool.name, reason: 'its public name is not stored yet' })
      continue
    }
    const judgedRisk = (of: JudgedTool) =>
      riskOf({
        name: of.name,
        annotations: of.annotations,
        override: change?.risk,
        defaultRisk: definition.defaultRisk,
        trust: definition.trust ?? 'none',
      })
    const { risk, from } = stricter(judgedRisk(tool), judgedRisk(tool.drift?.live ?? tool))
    const facts = { server: server.name, tool: tool.name, description: change?.description ?? tool.description }
    tools.push({
      name,
      publicName: name,
      description: toPublicDescription(describe, facts),
      server: server.name,
      scope: server.scope,
      connection: server.connection,
      risk,
      riskFrom: from,
      definition: tool,
      hash: tool.drift?.live.hash ?? tool.hash,
      drifted: tool.drift?.kind,
    })
  }
  return { tools, setAside }
}

/** Before a changed definition is accepted, it can only raise the risk of a tool, not lower it. */
function stricter(accepted: JudgedRisk, live: JudgedRisk): JudgedRisk {
  return riskOrder[live.risk] > riskOrder[accepted.risk] ? live : accepted
}

function includesServer(selector: ViewSelector, server: string, config: Config): boolean {
  if (selector.kind === 'all') return true
  if (selector.kind === 'server') return selector.name === server
  return matchesAny(findToolset(config, selector.name)?.servers ?? [], server)
}

function includesTool(selector: ViewSelector, name: string, config: Config): boolean {
  return selector.kind !== 'toolset' || matchesAny(findToolset(config, selector.name)?.tools ?? [], name)
}

/** `hasOwn`, because `constructor` is a valid name of a toolset. */
export function findToolset({ toolsets }: Config, name: string): Toolset | undefined {
  return Object.hasOwn(toolsets, name) ? toolsets[name] : undefined
}

function toListing(items: readonly JsonObject[]): Listing {
  const pages: Buffer[] = []
  const hash = createHash('sha256')
  for (let from = 0; from === 0 || from < items.length; from += itemsPerPage) {
    const page = Buffer.from(JSON.stringify(items.slice(from, from + itemsPerPage)))
    hash.update(page)
    pages.push(page)
  }
  return { hash: hash.digest('hex'), pages }
}

/** The definition for clients: the definition of the server with the overrides of the configuration. */
export function toWire(tool: ToolRef): JsonObject {
  const { definition } = tool
  const { title, annotations, outputSchema } = definition
  return {
    ...definition.rest,
    name: tool.name,
    ...(title !== undefined && { title }),
    description: tool.description,
    inputSchema: definition.inputSchema,
    ...(outputSchema && { outputSchema }),
    ...(annotations && { annotations: toPlain(annotations) }),
  }
}

function toPlain(annotations: NonNullable<JudgedTool['annotations']>): JsonObject {
  return JSON.parse(JSON.stringify(annotations))
}

export function toTool(tool: ToolRef): Tool {
  const { title, annotations, outputSchema, mended, inputSchema, name } = tool.definition
  return {
    name: tool.name,
    original: name,
    server: tool.server,
    description: tool.description,
    risk: tool.risk,
    riskFrom: tool.riskFrom,
    inputSchema,
    ...(title !== undefined && { title }),
    ...(annotations && { annotations }),
    ...(outputSchema && { outputSchema }),
    ...(mended !== undefined && { mended }),
    ...(tool.drifted && { drifted: tool.drifted }),
  }
}
