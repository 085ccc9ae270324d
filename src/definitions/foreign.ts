import type { JudgedTool } from './judge.ts'
import { isTelling } from './mentions.ts'

type Owner = { readonly name: string; readonly scope: string }

/** Which servers have a tool of a telling name, by its own and by its public name. */
export type ToolNames = ReadonlyMap<string, readonly Owner[]>

export function listToolNames(
  servers: readonly { readonly server: Owner; readonly tools: readonly JudgedTool[] }[],
  toPublicName: (server: string, tool: string) => string,
): ToolNames {
  const names = new Map<string, Owner[]>()
  const add = (name: string, server: Owner) => {
    if (!isTelling(name)) return
    const owners = names.get(name)
    if (!owners) names.set(name, [server])
    else if (owners.at(-1) !== server) owners.push(server)
  }
  for (const { server, tools } of servers) {
    for (const tool of tools) {
      add(tool.name, server)
      add(toPublicName(server.name, tool.name), server)
    }
  }
  return names
}

/**
 * Why a tool's text reaches for another server: it names a tool of it. Only servers that everybody has, or that stand
 * in the same scope, count: nobody can hide the tools of all by giving a server of his own a tool of some name.
 */
export function findForeignName(names: ToolNames, server: Owner, { mentions }: JudgedTool): string | undefined {
  for (const word of mentions) {
    const owners = names.get(word) ?? []
    if (owners.some((owner) => owner.name === server.name)) continue
    const other = owners.find(({ scope }) => scope === 'global' || scope === server.scope)
    if (other) return `it speaks of ${word}, a tool of the server ${other.name}`
  }
  return undefined
}
