import type { JsonObject, JsonValue } from '../contract/json.ts'
import type { ArgumentTest, Rule, Scalar } from '../contract/rule.ts'
import { matchesAny } from '../lib/glob.ts'

/** One condition on the arguments, with its pointer already parsed. */
export type Condition = {
  readonly pointer: string
  readonly path: readonly string[]
  readonly test: ArgumentTest
}

export function toConditions(stated: NonNullable<Rule['arguments']>): Condition[] {
  return Object.entries(stated).map(([pointer, test]) => ({
    pointer,
    path: toPath(pointer),
    test: typeof test === 'object' && test !== null ? test : { equals: test },
  }))
}

/** `/a~1b/0` is the first entry of the list at `a/b`. */
function toPath(pointer: string): string[] {
  return pointer
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

export function atPointer(root: JsonValue, pointer: string): JsonValue | undefined {
  return findValue(root, toPath(pointer))
}

export function fulfils({ path, test }: Condition, given: JsonObject): boolean {
  return passes(test, findValue(given, path))
}

/** Finds only values that the caller sent, not inherited properties or the `length` of a list. */
export function findValue(root: JsonValue, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = root
  for (const segment of path) {
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value)) value = isIndex(segment) ? value[Number(segment)] : undefined
    else value = Object.hasOwn(value, segment) ? value[segment] : undefined
  }
  return value
}

function isIndex(segment: string): boolean {
  return /^(0|[1-9][0-9]{0,9})$/.test(segment)
}

/** Strings are not converted to numbers, and numbers are not converted to strings. */
function passes(test: ArgumentTest, value: JsonValue | undefined): boolean {
  if (test.exists !== undefined && test.exists !== (value !== undefined)) return false
  if (test.equals !== undefined && value !== test.equals) return false
  if (test.in !== undefined && !isOneOf(test.in, value)) return false
  if (test.not !== undefined && isOneOf(toList(test.not), value)) return false
  if (test.glob !== undefined && !(typeof value === 'string' && matchesAny(toList(test.glob), value))) return false
  if (test.min !== undefined && !(typeof value === 'number' && value >= test.min)) return false
  return test.max === undefined || (typeof value === 'number' && value <= test.max)
}

function isOneOf(among: readonly Scalar[], value: JsonValue | undefined): boolean {
  return among.some((each) => each === value)
}

function toList<Item extends Scalar>(value: Item | readonly Item[]): readonly Item[] {
  return isList(value) ? value : [value]
}

function isList<Item extends Scalar>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value)
}

/** The condition in words after "must", for example `be "staging"` or `exist and match /srv/**`. */
export function conditionInWords({ test }: Condition): string {
  const parts = [
    test.exists === true && 'exist',
    test.exists === false && 'not exist',
    test.equals !== undefined && `be ${JSON.stringify(test.equals)}`,
    test.in !== undefined && `be one of ${test.in.map((each) => JSON.stringify(each)).join(', ')}`,
    test.not !== undefined &&
      `not be ${toList(test.not)
        .map((each) => JSON.stringify(each))
        .join(' or ')}`,
    test.glob !== undefined && `be text that matches ${toList(test.glob).join(' or ')}`,
    test.min !== undefined && `be a number of at least ${test.min}`,
    test.max !== undefined && `be a number of at most ${test.max}`,
  ]
  return parts.filter((part) => part !== false).join(' and ')
}
