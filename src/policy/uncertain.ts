import type { JsonObject, JsonValue } from '../contract/json.ts'
import { hiddenMark } from '../lib/secret.ts'
import { type Condition, findValue } from './conditions.ts'
import { findMismatch, type ScopedRules, type Subject } from './decide.ts'
import { prepareRules } from './prepare.ts'

/**
 * The pointer of the first masked argument or `_meta` key that a rule depends on. A rule that does not match for another
 * reason does not depend on masked values.
 */
export function findHidden(scopes: readonly ScopedRules[], subject: Subject): string | undefined {
  const { arguments: given, meta = {} } = subject
  if (!holdsHidden(given) && !holdsHidden(meta)) return undefined
  for (const { scope, rules } of scopes) {
    for (const rule of prepareRules(scope, rules)) {
      const hidden = rule.conditions.filter(({ path }) => isHidden(given, path))
      const hiddenMeta = rule.meta.filter(({ path }) => isHidden(meta, path))
      const [first] = [...hidden.map(({ pointer }) => pointer), ...hiddenMeta.map(({ pointer }) => `meta ${pointer}`)]
      if (first === undefined) continue
      const known = { conditions: without(rule.conditions, hidden), meta: without(rule.meta, hiddenMeta) }
      if (findMismatch({ ...rule, ...known }, subject) === undefined) return first
    }
  }
  return undefined
}

function without(conditions: readonly Condition[], left: readonly Condition[]): Condition[] {
  return conditions.filter((condition) => !left.includes(condition))
}

function isHidden(given: JsonObject, path: readonly string[]): boolean {
  const value = findValue(given, path)
  return typeof value === 'string' && value.includes(hiddenMark)
}

function holdsHidden(value: JsonValue): boolean {
  if (typeof value === 'string') return value.includes(hiddenMark)
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsHidden)
}
