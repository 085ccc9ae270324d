import type { Risk } from '../contract/risk.ts'
import { isChanging, isDestroying, toWords } from './risk.ts'

/** A risk read from a tool's own words, for a person to accept or to leave. It changes nothing by itself. */
export type RiskSuggestion = { readonly risk: Risk; readonly because: string }

const reading = new Set(
  'get list read search find show describe fetch lookup view count check inspect explain summarize browse preview compare diff validate ping stat status info tree resolve calculate convert analyze whoami'.split(
    ' ',
  ),
)

/** Beginnings of words in a description that speak of destroying or changing, whatever their ending. */
const destroyingText = /\b(?:delet|remov|destroy|drop|purg|wip(?:e|ing)|eras|truncat|overwrit|irreversib|permanently)/i
const changingText =
  /\b(?:creat|updat|writ|modif|insert|append|send|post|publish|upload|mov(?:e|ing)|renam|execut|install|edit|sav(?:e|ing)|add(?:s|ing)?\b|set(?:s|ting)?\b|run(?:s|ning)?\b)/i

/**
 * The words of the name count most; a description can only raise what the name says. Where the two contradict each
 * other, or neither says anything, there is no suggestion.
 */
export function suggestRisk(tool: { readonly name: string; readonly description: string }): RiskSuggestion | undefined {
  const words = toWords(tool.name)
  const destroying = words.find(isDestroying)
  if (destroying !== undefined) return { risk: 'danger', because: `its name says "${destroying}"` }
  const inText = destroyingText.exec(tool.description)?.[0]
  if (inText !== undefined) return { risk: 'danger', because: `its description says "${inText.toLowerCase()}…"` }
  const verb = words.find((word) => isChanging(word) || reading.has(word))
  if (verb === undefined) return undefined
  if (isChanging(verb)) return { risk: 'write', because: `its name says "${verb}"` }
  if (words.some(isChanging) || changingText.test(tool.description)) return undefined
  return { risk: 'read', because: `its name says "${verb}" and its description speaks of no change` }
}
