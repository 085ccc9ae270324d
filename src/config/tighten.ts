import type { ScopedServer } from '../contract/config.ts'
import type { ServerDefinition, SharedLimits, ToolChoice, ToolOverride } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import { matchesAny } from '../lib/glob.ts'

/**
 * Removes the fields that would loosen the inherited server. `members.ts` checks this at writing, but the
 * inherited entry may become stricter, or be added, after a member wrote the entry.
 */
export function withoutLoosening(statement: ScopedServer, inherited: ServerDefinition, trusted: boolean): ScopedServer {
  const { pinning, ...others } = statement
  const kept = pinning === undefined || inherited.pinning === 'strict' ? others : statement
  return trusted ? kept : tightened(kept, inherited)
}

/**
 * Outside the scopes of administrators, an entry can only disable a server, restrict it and raise its risks. The title
 * stays as inherited, because people recognise the server by it.
 */
function tightened(statement: ScopedServer, inherited: ServerDefinition): ScopedServer {
  const { title: _title, enabled, trust, defaultRisk, limits, tools, ...others } = statement
  return {
    ...others,
    ...(enabled === false && { enabled }),
    ...(trust !== undefined && !lowersTrust(statement, inherited) && { trust }),
    ...(defaultRisk !== undefined && !lowersDefaultRisk(statement, inherited) && { defaultRisk }),
    ...(limits && { limits: lowerOf(limits, inherited.limits) }),
    ...(tools && { tools: tightenedTools(tools, inherited) }),
  }
}

type Tools = NonNullable<ScopedServer['tools']>
type Risk = ServerDefinition['defaultRisk']

function tightenedTools({ include, exclude, override }: Tools, inherited: ServerDefinition): Tools {
  const { tools } = inherited
  return {
    ...(include && { include: include.filter((glob) => isWithin(glob, tools)) }),
    ...(exclude && { exclude: [...new Set([...tools.exclude, ...exclude])] }),
    ...(override && { override: tightenedOverride(override, inherited) }),
  }
}

/** Names and descriptions stay as inherited, because rules match names. */
function tightenedOverride(override: ToolChoice['override'], inherited: ServerDefinition): ToolChoice['override'] {
  const tightenedOne = (tool: string, { risk, limits }: ToolOverride): ToolOverride => ({
    ...(risk !== undefined && !lowersRiskOf(tool, risk, inherited) && { risk }),
    ...(limits && { limits: lowerOf(limits, own(inherited.tools.override, tool)?.limits) }),
  })
  return Object.fromEntries(Object.entries(override).map(([tool, change]) => [tool, tightenedOne(tool, change)]))
}

/** Whether a glob matches only tools that the inherited entry offers. */
export function isWithin(glob: string, { include }: Pick<ToolChoice, 'include'>): boolean {
  if (include.includes('*') || include.includes(glob)) return true
  return !/[*?]/.test(glob) && matchesAny(include, glob)
}

function lowerOf(stated: SharedLimits, inherited: SharedLimits = {}): SharedLimits {
  return Object.fromEntries(
    limitNames.flatMap((name) => {
      const values = [stated[name], inherited[name]].filter((value) => value !== undefined)
      return values.length === 0 ? [] : [[name, Math.min(...values)]]
    }),
  )
}

const limitNames = ['callsPerMinute', 'concurrent'] as const satisfies (keyof SharedLimits)[]

export function lowersTrust({ trust }: ScopedServer, inherited: ServerDefinition | undefined): boolean {
  return trust === 'annotations' && inherited?.trust !== 'annotations'
}

/** Any value except `danger`, the highest, could be lower than the risk that a tool has without it. */
export function lowersDefaultRisk({ defaultRisk }: ScopedServer, inherited: ServerDefinition | undefined): boolean {
  return defaultRisk !== undefined && defaultRisk !== 'danger' && defaultRisk !== inherited?.defaultRisk
}

export function lowersRiskOf(tool: string, risk: Risk, inherited: ServerDefinition | undefined): boolean {
  return risk !== undefined && risk !== 'danger' && risk !== own(inherited?.tools.override ?? {}, tool)?.risk
}
