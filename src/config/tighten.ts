import type { ScopedServer } from '../contract/config.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { own } from './values.ts'

/**
 * A statement without the fields that would loosen the inherited server. Writing is checked as well (`members.ts`), but
 * the inherited entry may become stricter after a member wrote the statement.
 */
export function withoutLoosening(statement: ScopedServer, inherited: ServerDefinition, trusted: boolean): ScopedServer {
  const { pinning, ...others } = statement
  const kept = pinning === undefined || inherited.pinning === 'strict' ? others : statement
  return trusted ? kept : withoutLowering(kept, inherited)
}

/** Where others than administrators write, risk only rises: a lower one is left out. */
function withoutLowering(statement: ScopedServer, inherited: ServerDefinition): ScopedServer {
  const { trust, defaultRisk, tools, ...others } = statement
  return {
    ...others,
    ...(trust !== undefined && !lowersTrust(statement, inherited) && { trust }),
    ...(defaultRisk !== undefined && !lowersDefaultRisk(statement, inherited) && { defaultRisk }),
    ...(tools && { tools: withoutLoweredTools(tools, inherited) }),
  }
}

function withoutLoweredTools(tools: Tools, inherited: ServerDefinition): Tools {
  if (!tools.override) return tools
  const override = Object.entries(tools.override).map(([name, change]) => {
    const { risk, ...others } = change
    return [name, lowersRiskOf(name, risk, inherited) ? others : change]
  })
  return { ...tools, override: Object.fromEntries(override) }
}

type Tools = NonNullable<ScopedServer['tools']>
type Risk = ServerDefinition['defaultRisk']

export function lowersTrust({ trust }: ScopedServer, inherited: ServerDefinition | undefined): boolean {
  return trust === 'annotations' && inherited?.trust !== 'annotations'
}

/** `danger` is the highest; any other value could be lower than the risk that a tool would have without it. */
export function lowersDefaultRisk({ defaultRisk }: ScopedServer, inherited: ServerDefinition | undefined): boolean {
  return defaultRisk !== undefined && defaultRisk !== 'danger' && defaultRisk !== inherited?.defaultRisk
}

export function lowersRiskOf(tool: string, risk: Risk, inherited: ServerDefinition | undefined): boolean {
  return risk !== undefined && risk !== 'danger' && risk !== own(inherited?.tools.override ?? {}, tool)?.risk
}
