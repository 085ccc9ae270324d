import type { Risk } from '../contract/risk.ts'
import { isChanging, isDestroying, toWords } from './risk.ts'

/** A risk derived from a tool's name and description, which a person can accept or reject. */
export type RiskSuggestion = { readonly risk: Risk; readonly because: string }

const reading = new Set(
  'get list read search find show describe fetch lookup view count check inspect explain summarize browse preview compare diff validate ping stat status info tree resolve calculate convert analyze whoami'.split(
    ' ',
  ),
)

/** Word stems in a description that mean destroying or changing. */
const destroyingText = /\b(?:delet|remov|destroy|drop|purg|wip(?:e|ing)|eras|truncat|overwrit|irreversib|permanently)/i
const changingText =
  /\b(?:creat|updat|writ|modif|insert|append|send|post|publish|upload|mov(?:e|ing)|renam|execut|install|edit|sav(?:e|ing)|add(?:s|ing)?\b|set(?:s|ting)?\b|run(?:s|ning)?\b)/i

/**
 * The name decides; the description can only raise the risk. There is no suggestion if the two contradict each other or
 * contain no known word.
 */
export function suggestRisk(tool: { readonly name: string; readonly description: string }): RiskSuggestion | undefined {
  const words = toWords(tool.name)
  const destroying = words.find(isDestroying)
  if (destroying !== undefined) return { risk: 'danger', because: `the name contains "${destroying}"` }
  const inText = destroyingText.exec(tool.description)?.[0]
  if (inText !== undefined) return { risk: 'danger', because: `the description contains "${inText.toLowerCase()}…"` }
  const verb = words.find((word) => isChanging(word) || reading.has(word))
  if (verb === undefined) return undefined
  if (isChanging(verb)) return { risk: 'write', because: `the name contains "${verb}"` }
  if (words.some(isChanging) || changingText.test(tool.description)) return undefined
  return { risk: 'read', because: `the name contains "${verb}", and the description mentions no change` }
}
