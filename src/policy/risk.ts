import { type Risk, riskOrder } from '../contract/risk.ts'
import { hasHints, type Tool, type ToolAnnotations } from '../contract/tool.ts'

export type RiskFacts = {
  /** The original name of the tool. */
  readonly name: string
  readonly annotations: ToolAnnotations | undefined
  readonly override: Risk | undefined
  readonly defaultRisk: Risk | undefined
  readonly trust: 'annotations' | 'none'
}

export type JudgedRisk = { readonly risk: Risk; readonly from: Tool['riskFrom'] }

/** The configured risk first, then the server's annotations as far as they are trusted, then the default. */
export function riskOf(facts: RiskFacts): JudgedRisk {
  if (facts.override) return { risk: facts.override, from: 'override' }
  const fallback: JudgedRisk = { risk: facts.defaultRisk ?? 'write', from: 'default' }
  if (!facts.annotations || !hasHints(facts.annotations)) return fallback
  const claimed = claimOf(facts.annotations)
  const lowers = riskOrder[claimed] < riskOrder[fallback.risk]
  if (lowers && facts.trust === 'none') return fallback
  const believed = contradicts(facts.name, claimed) ? atLeastWrite(lowers ? fallback.risk : claimed) : claimed
  return { risk: believed, from: believed === claimed ? 'annotations' : 'name' }
}

function claimOf({ readOnlyHint, destructiveHint }: ToolAnnotations): Risk {
  if (destructiveHint === true) return 'danger'
  return readOnlyHint === true ? 'read' : 'write'
}

function atLeastWrite(risk: Risk): Risk {
  return risk === 'read' ? 'write' : risk
}

/** Words in a tool's name that show that the tool does not only read. */
const destroying = new Set(
  'delete remove destroy drop purge wipe erase truncate kill terminate uninstall revoke overwrite shutdown'.split(' '),
)
/** Words at the beginning of a tool's name that indicate a change. */
const changing = new Set(
  'create update write set add insert put post send merge push publish deploy move rename edit patch apply approve upload install modify save assign invite transfer pay submit'.split(
    ' ',
  ),
)

/** Whether the tool's name indicates a higher risk than its annotations. */
function contradicts(name: string, claimed: Risk): boolean {
  if (claimed === 'danger') return false
  const words = toWords(name)
  if (words.some(isDestroying)) return true
  return claimed === 'read' && isChanging(words[0] ?? '')
}

export function isDestroying(word: string): boolean {
  return destroying.has(word)
}

export function isChanging(word: string): boolean {
  return changing.has(word)
}

/** The words of a tool's name in lower case, from snake, kebab or camel case. */
export function toWords(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
}
