import type { JsonObject, JsonValue } from '../contract/json.ts'
import { hiddenMark } from '../lib/secret.ts'
import { findValue } from './conditions.ts'
import { findMismatch, type ScopedRules, type Subject } from './decide.ts'
import { prepareRules } from './prepare.ts'

/**
 * The first argument on which rules depend and of which the record has only a mask, by its pointer. A rule that fails
 * for another reason depends on nothing that is hidden.
 */
export function findHidden(scopes: readonly ScopedRules[], subject: Subject): string | undefined {
  if (!holdsHidden(subject.arguments)) return undefined
  for (const { scope, rules } of scopes) {
    for (const rule of prepareRules(scope, rules)) {
      const others = rule.conditions.filter(({ path }) => !isHidden(subject.arguments, path))
      if (others.length === rule.conditions.length) continue
      if (findMismatch({ ...rule, conditions: others }, subject) !== undefined) continue
      return rule.conditions.find(({ path }) => isHidden(subject.arguments, path))?.pointer
    }
  }
  return undefined
}

function isHidden(given: JsonObject, path: readonly string[]): boolean {
  const value = findValue(given, path)
  return typeof value === 'string' && value.includes(hiddenMark)
}

function holdsHidden(value: JsonValue): boolean {
  if (typeof value === 'string') return value.includes(hiddenMark)
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsHidden)
}
