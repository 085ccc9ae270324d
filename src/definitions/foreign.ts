import type { JudgedTool } from './judge.ts'
import { isDistinctive } from './mentions.ts'

type Owner = { readonly name: string; readonly scope: string }

/** The servers that have a tool with a distinctive name, by original and by public name. */
export type ToolNames = ReadonlyMap<string, readonly Owner[]>

export function listToolNames(
  servers: readonly {
    readonly server: Owner
    readonly tools: readonly JudgedTool[]
    publicNameOf(tool: string): string | undefined
  }[],
): ToolNames {
  const names = new Map<string, Owner[]>()
  const add = (name: string, server: Owner) => {
    if (!isDistinctive(name)) return
    const owners = names.get(name)
    if (!owners) names.set(name, [server])
    else if (owners.at(-1) !== server) owners.push(server)
  }
  for (const { server, tools, publicNameOf } of servers) {
    for (const tool of tools) {
      add(tool.name, server)
      const publicName = publicNameOf(tool.name)
      if (publicName !== undefined) add(publicName, server)
    }
  }
  return names
}

/**
 * The reason if a tool's text names a tool of another server. Only servers of the global scope or of the same scope are
 * compared: otherwise a user could hide shared tools by adding a server with a tool of a certain name.
 */
export function findForeignName(names: ToolNames, server: Owner, { mentions }: JudgedTool): string | undefined {
  for (const word of mentions) {
    const owners = names.get(word) ?? []
    if (owners.some((owner) => owner.name === server.name)) continue
    const other = owners.find(({ scope }) => scope === 'global' || scope === server.scope)
    if (other) return `its text mentions ${word}, a tool of the server ${other.name}`
  }
  return undefined
}
