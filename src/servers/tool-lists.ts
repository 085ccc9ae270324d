import { z } from 'zod'
import type { ConnectionSpec, EffectiveServer } from '../config/config.ts'
import type { EffectiveServer as ShownServer } from '../contract/api/config.ts'
import type { ListedServer } from '../contract/api/servers.ts'
import type { Server } from '../contract/server.ts'
import { type ListedTool, toListedTool } from '../contract/tool.ts'
import { type Page, parseCursor, toCursor } from '../storage/page.ts'
import type { OfferedTools } from './views.ts'

export type ToolPageQuery = { readonly limit: number; readonly cursor?: string | undefined }

/** A page ends after the server that reaches this number, so that one answer stays bounded. */
const mostTools = 2000

/** A page of servers with the tools that each offers. Servers are sorted by the id of their connection. */
export function toServersWithTools(
  servers: readonly Server[],
  { limit, cursor }: ToolPageQuery,
  parts: { readonly catalog: Pick<OfferedTools, 'offered'>; readonly specs: readonly ConnectionSpec[] },
): Page<ListedServer> {
  const after = cursor === undefined ? '' : parseCursor(cursor, z.tuple([z.string()]))[0]
  const specs = new Map(parts.specs.map((spec) => [spec.id, spec]))
  const rest = servers.filter(({ id }) => id > after).sort((left, right) => (left.id < right.id ? -1 : 1))
  const items: ListedServer[] = []
  let tools = 0
  for (const server of rest.slice(0, limit)) {
    if (tools >= mostTools) break
    const listed = toTools(specs.get(server.id), parts.catalog)
    tools += listed.length
    items.push({ ...server, tools: listed })
  }
  const last = items.length < rest.length ? items.at(-1) : undefined
  return last === undefined ? { items } : { items, next: toCursor([last.id]) }
}

function toTools(spec: ConnectionSpec | undefined, catalog: Pick<OfferedTools, 'offered'>): ListedTool[] {
  if (spec === undefined) return []
  const { id: connection, name, scope, definition, lineage } = spec
  return catalog.offered({ name, scope, connection, definition, lineage }, connection).tools.map(toListedTool)
}

/** The state and tools of an effective server, as far as they were asked for. A disabled server offers no tools. */
export function toIncluded(
  server: EffectiveServer,
  status: Pick<Server, 'state' | 'error'> | undefined,
  { include, catalog }: { include: ReadonlySet<string>; catalog: Pick<OfferedTools, 'offered'> },
): Pick<ShownServer, 'state' | 'error' | 'tools'> {
  const { enabled } = server.definition
  const state = enabled ? (status?.state ?? 'connecting') : 'disabled'
  const tools = () => (enabled ? catalog.offered(server, server.connection).tools.map(toListedTool) : [])
  return {
    ...(include.has('state') && { state, ...(enabled && status?.error && { error: status.error }) }),
    ...(include.has('tools') && { tools: tools() }),
  }
}
