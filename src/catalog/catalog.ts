import type { ConfigStore, EffectiveConfig, EffectiveServer } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { CallMethod } from '../contract/permit.ts'
import type { Principal } from '../contract/principal.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { SetAside, Tool } from '../contract/tool.ts'
import { noLists, type RawList, type Servers } from '../servers/servers.ts'
import { type JudgedList, judgeTools } from './judge.ts'
import type { JudgedOffering } from './merge.ts'
import { type JudgedOffers, judgeOffers, type OfferKind } from './offers.ts'
import { findOwnTarget, findTarget, type Target } from './target.ts'
import { buildView, findToolset, offeredTools, type ToolRef, toTool, type View, type ViewSelector } from './view.ts'

export { inFormOf } from './addresses.ts'
export { ownServer, readResultName } from './own-tools.ts'
export type { Target } from './target.ts'
export { type Listing, type ToolRef, toTool, type View, type ViewSelector } from './view.ts'

export type Catalog = {
  /** Everything that a principal may see at one address. Throws for a toolset or server that is not there. */
  view(principal: Principal, selector: ViewSelector): View
  /** What stands behind a name now; the check at listing is never enough. */
  resolve(principal: Principal, selector: ViewSelector, method: CallMethod, name: string): Target | undefined
  /** What a connection offers after judgement, before any principal's choice. */
  ofConnection(id: string): JudgedOffering
  /** What one configured server offers under its scope's choice. */
  offered(server: EffectiveServer, connection: string): { tools: ToolRef[]; setAside: SetAside[] }
  /** What a definition on trial would offer. */
  preview(server: string, definition: ServerDefinition, list: RawList): { tools: Tool[]; setAside: SetAside[] }
  /** Something that views depend on has changed. */
  invalidate(): void
}

const maxViews = 500
const noOffers: JudgedOffers = { offers: [], setAside: [] }

export function createCatalog(parts: { config: ConfigStore; servers: Pick<Servers, 'lists'> }): Catalog {
  const judged = new WeakMap<RawList, JudgedList>()
  const judgedOffers = new WeakMap<RawList, JudgedOffers>()
  const views = new Map<string, View>()

  function judge(list: RawList): JudgedList {
    const known = judged.get(list) ?? judgeTools(list.items)
    judged.set(list, known)
    return known
  }

  function judgeOther(kind: OfferKind, list: RawList): JudgedOffers {
    if (list.items.length === 0) return noOffers
    const known = judgedOffers.get(list) ?? judgeOffers(kind, list.items)
    judgedOffers.set(list, known)
    return known
  }

  function ofConnection(id: string): JudgedOffering {
    const lists = parts.servers.lists(id) ?? noLists
    const { tools, setAside } = judge(lists.tools)
    const resources = judgeOther('resources', lists.resources)
    const templates = judgeOther('templates', lists.templates)
    const prompts = judgeOther('prompts', lists.prompts)
    return {
      tools,
      resources: resources.offers,
      templates: templates.offers,
      prompts: prompts.offers,
      setAside: [...setAside, ...resources.setAside, ...templates.setAside, ...prompts.setAside],
    }
  }

  function view(principal: Principal, selector: ViewSelector): View {
    const effective = parts.config.effective(principal)
    const key = `${effective.key} ${selector.kind} ${selector.kind === 'all' ? '' : selector.name}`
    const known = views.get(key)
    if (known) return known
    checkSelector(effective, selector)
    const config = parts.config.current()
    const built = buildView({ key, effective, selector, config, ofConnection })
    for (const old of views.keys()) {
      if (views.size < maxViews) break
      views.delete(old)
    }
    views.set(key, built)
    return built
  }

  function resolve(principal: Principal, selector: ViewSelector, method: CallMethod, name: string): Target | undefined {
    const found = findTarget(view(principal, selector), method, name)
    // Also where nothing is offered any more: what was cut before can still be read.
    return found ?? (selector.kind === 'server' ? undefined : findOwnTarget(method, name))
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
    view,
    resolve,
    ofConnection,
    offered: (server, connection) => offeredTools(server, ofConnection(connection).tools, parts.config.current()),
    preview(server, definition, list) {
      const { naming, describe } = parts.config.current()
      const { tools, setAside } = judge(list)
      const offered = offeredTools({ name: server, scope: 'global', connection: server, definition }, tools, {
        naming,
        describe,
      })
      return { tools: offered.tools.map(toTool), setAside: [...setAside, ...offered.setAside] }
    },
    invalidate: () => views.clear(),
  }
}
