import { z } from 'zod'

/** Sets plain messages for all zod schemas, so that the CLI, REST and configuration files report problems in the same words. */
export function setPlainMessages(): void {
  z.config({ customError: (issue) => explainIssue(issue, issue.input) })
}

type Issue = z.core.$ZodIssue | z.core.$ZodRawIssue

/**
 * What is wrong with a value, such as `must be read, write or danger`; undefined if the schema has its own message.
 * The message never contains the value, because the value may be a secret in the wrong field.
 */
export function explainIssue(issue: Issue, value: unknown): string | undefined {
  if (issue.code === 'invalid_type') return explainType(issue.expected, value)
  if (issue.code === 'invalid_value') return explainChoice(issue.values.map(String), value)
  if (issue.code === 'too_small') return explainBound(issue.origin, issue.minimum, 'least')
  if (issue.code === 'too_big') return explainBound(issue.origin, issue.maximum, 'most')
  if (issue.code === 'unrecognized_keys') return `has unknown keys: ${issue.keys.join(', ')}`
  return undefined
}

function explainType(expected: string, value: unknown): string {
  if (value === undefined) return 'is missing'
  if (typeof value === 'number' && expected !== 'string') return `must be ${typeWords[expected] ?? expected}`
  const quotes = expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')
  const advice = quotes ? '; put it in quotes' : ''
  return `must be ${typeWords[expected] ?? expected}, not ${kindOf(value)}${advice}`
}

/** The words for JSON types in messages. */
export const typeWords: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  null: 'null',
  record: 'a map',
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  if (typeof value === 'boolean') return 'true or false'
  return typeof value === 'number' ? 'a number' : 'text'
}

export function explainChoice(choices: readonly string[], value: unknown): string {
  const message = `must be ${joinOr(choices)}`
  return value === undefined ? `is missing; it ${message}` : message
}

/** `a, b or c` */
export function joinOr(words: readonly string[]): string {
  return words.join(', ').replace(/, ([^,]*)$/, ' or $1')
}

function explainBound(origin: string, bound: number | bigint, side: 'least' | 'most'): string {
  if (side === 'least' && bound === 1 && origin !== 'number') return 'must not be empty'
  if (origin === 'string') return `must have at ${side} ${bound} characters`
  return origin === 'array' ? `must have at ${side} ${bound} entries` : `must be at ${side} ${bound}`
}
