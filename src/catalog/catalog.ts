import type { ConfigStore, EffectiveConfig, EffectiveServer } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { SetAside, Tool } from '../contract/tool.ts'
import type { RawList, Servers } from '../servers/servers.ts'
import { type JudgedList, judgeTools } from './judge.ts'
import { buildView, findToolset, offeredTools, type ToolRef, toTool, type View, type ViewSelector } from './view.ts'

export { type ToolRef, toTool, type View, type ViewSelector } from './view.ts'

export type Catalog = {
  /** Everything that a principal may see at one address. Throws for a toolset or server that is not there. */
  view(principal: Principal, selector: ViewSelector): View
  /** The tool behind a public name, as it stands now; the check at listing is never enough. */
  resolve(principal: Principal, selector: ViewSelector, name: string): ToolRef | undefined
  /** What a connection offers after judgement, before any principal's choice. */
  ofConnection(id: string): JudgedList
  /** What one configured server offers under its scope's choice. */
  offered(server: EffectiveServer, connection: string): { tools: ToolRef[]; setAside: SetAside[] }
  /** What a definition on trial would offer. */
  preview(server: string, definition: ServerDefinition, list: RawList): { tools: Tool[]; setAside: SetAside[] }
  /** Something that views depend on has changed. */
  invalidate(): void
}

const maxViews = 500
const nothing: JudgedList = { tools: [], setAside: [] }

export function createCatalog(parts: { config: ConfigStore; servers: Pick<Servers, 'tools'> }): Catalog {
  const judged = new WeakMap<RawList, JudgedList>()
  const views = new Map<string, View>()

  function judge(list: RawList): JudgedList {
    const known = judged.get(list) ?? judgeTools(list.items)
    judged.set(list, known)
    return known
  }

  function ofConnection(id: string): JudgedList {
    const list = parts.servers.tools(id)
    return list ? judge(list) : nothing
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
    resolve: (principal, selector, name) => view(principal, selector).tools.get(name),
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
