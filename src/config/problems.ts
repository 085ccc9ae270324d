import { GatewayError } from '../contract/errors.ts'
import type { Path } from '../documents/values.ts'
import { toVisible } from '../shared/visible.ts'

/** One mistake in a configuration file. */
export type ConfigProblem = {
  readonly file: string
  readonly line: number
  readonly column?: number
  /** Dotted path; empty for a syntax error. */
  readonly key: string
  readonly message: string
  /** The probably intended value. */
  readonly suggestion?: string
}

/** A problem with its path, before the line number was looked up. */
export type Finding = { readonly path: Path; readonly message: string; readonly suggestion?: string }

/** `file:line: key: message` in one line, for terminals, logs and events. */
export function formatProblem(problem: ConfigProblem): string {
  const key = problem.key === '' ? '' : `${problem.key}: `
  const suggestion = problem.suggestion === undefined ? '' : ` (did you mean \`${problem.suggestion}\`?)`
  return toVisible(`${problem.file}:${problem.line}: ${key}${problem.message}${suggestion}`)
}

export function toConfigError(problems: readonly ConfigProblem[]): GatewayError {
  const [first] = problems
  const text = first === undefined ? 'The configuration is not valid' : formatProblem(first)
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new GatewayError('config-invalid', text + more, { problems })
}
