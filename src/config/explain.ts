import type { z } from 'zod'
import { explainChoice, explainIssue, joinOr, typeWords } from '../contract/issues.ts'
import { isPlainObject, type Path, type PlainObject, valueAt } from '../documents/values.ts'
import { nearest } from '../lib/text.ts'
import type { Finding } from './problems.ts'
import { findSchemaAt, keysOf } from './schema.ts'

type Issue = z.core.$ZodIssue

/**
 * Converts schema errors to readable messages. Values are never included, because they may be secrets in a wrong field.
 * `base` is the path of `root` in a whole configuration. It is used to look up the known keys.
 */
export function explainIssues(issues: readonly Issue[], root: unknown, base: Path = []): Finding[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map((segment) => (typeof segment === 'number' ? segment : String(segment)))
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => explainUnknown(path, key, root, base))
    if (issue.code === 'invalid_union') return explainUnion(issue, path, root, base)
    return [{ path, ...explainOne(toExact(issue, path, root, base), valueAt(root, path)) }]
  })
}

/** For a value that is not a number, an integer schema reports "number": replaces it with "integer". */
function toExact(issue: Issue, path: Path, root: unknown, base: Path): Issue {
  if (issue.code !== 'invalid_type' || issue.expected !== 'number') return issue
  const { type } = findSchemaAt([...base, ...path], embed(root, base)) ?? {}
  return type === 'integer' ? { ...issue, expected: 'int' } : issue
}

type Words = Omit<Finding, 'path'>

function explainOne(issue: Issue, value: unknown): Words {
  if (issue.code === 'invalid_value') return toChoice(issue.values.map(String), value)
  if (issue.code === 'invalid_key') return { message: `the name ${issue.issues[0]?.message ?? 'is not valid'}` }
  if (issue.code === 'invalid_format' && issue.format === 'url') {
    return { message: 'must be a complete address such as https://gate.example.com' }
  }
  return { message: explainIssue(issue, value) ?? issue.message }
}

function toChoice(choices: readonly string[], value: unknown): Words {
  const suggestion = typeof value === 'string' ? nearest(value, choices) : undefined
  return { message: explainChoice(choices, value), ...(suggestion !== undefined && { suggestion }) }
}

/** Names the right key for keys of other programs' files and for keys of the other transport. */
function explainUnknown(path: Path, key: string, root: unknown, base: Path): Finding {
  const here = [...path, key]
  const parent = valueAt(root, path)
  const transport = isPlainObject(parent) ? parent.transport : undefined
  if (transport === 'stdio' && remoteOnly.has(key))
    return { path: here, message: 'is only allowed for http and sse, not for stdio' }
  if ((transport === 'http' || transport === 'sse') && stdioOnly.has(key)) {
    return { path: here, message: `is only allowed for stdio, not for ${transport}` }
  }
  const known = keysOf(findSchemaAt([...base, ...path], embed(root, base)))
  const borrowed = borrowedKeys[key]
  const suggestion = borrowed !== undefined && known.includes(borrowed) ? borrowed : nearest(key, known)
  return { path: here, message: 'is not a known key', suggestion }
}

const remoteOnly: ReadonlySet<string> = new Set(['url', 'headers'])
const stdioOnly: ReadonlySet<string> = new Set(['command', 'args', 'env', 'cwd', 'secretsInArguments'])

/** Key names of other programs, with our name for each. */
const borrowedKeys: Readonly<Record<string, string>> = {
  mcpServers: 'servers',
  type: 'transport',
  cmd: 'command',
  environment: 'env',
  envs: 'env',
  uri: 'url',
  httpUrl: 'url',
  serverUrl: 'url',
  disabled: 'enabled',
  includeTools: 'tools',
  excludeTools: 'tools',
}

function embed(root: unknown, base: Path): unknown {
  return base.reduceRight((value: unknown, segment) => ({ [String(segment)]: value }), root)
}

function explainUnion(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: Path,
  root: unknown,
  base: Path,
): Finding[] {
  if (path.at(-1) === 'transport') return [{ path, ...explainTransport(valueAt(root, path.slice(0, -1))) }]
  const value = valueAt(root, path)
  // The value is a list: report the errors of its entries instead of the other alternatives.
  const inside = issue.errors.find((branch) => branch.every(({ path: deeper }) => deeper.length > 0))
  if (inside !== undefined && Array.isArray(value)) {
    return explainIssues(inside, value, [...base, ...path]).map((finding) => ({
      ...finding,
      path: [...path, ...finding.path],
    }))
  }
  // The value is a map: report the errors inside it instead of the other alternatives.
  const map = issue.errors.find((branch) => branch.every(isAboutMap))
  if (map !== undefined && isPlainObject(value)) {
    return explainIssues(map, value, [...base, ...path]).map((finding) => ({
      ...finding,
      path: [...path, ...finding.path],
    }))
  }
  const choice = issue.errors.flat().find((branch) => branch.code === 'invalid_value')
  if (choice !== undefined && !Array.isArray(value)) return [{ path, ...explainOne(choice, value) }]
  return [{ path, message: `must be ${toAlternatives(findSchemaAt([...base, ...path], embed(root, base)))}` }]
}

function isAboutMap({ path, code }: Issue): boolean {
  return path.length > 0 || code === 'unrecognized_keys' || code === 'custom'
}

function toAlternatives(schema: PlainObject | undefined): string {
  const branches = Array.isArray(schema?.anyOf) ? schema.anyOf.filter(isPlainObject) : [schema ?? {}]
  const types = branches.flatMap(({ type }) => type)
  const words = types.map((type) => typeWords[String(type)] ?? String(type))
  return joinOr(words)
}

const transports = ['stdio', 'http', 'sse']

const borrowedTransports: Readonly<Record<string, string>> = {
  'streamable-http': 'http',
  streamable_http: 'http',
  streamableHttp: 'http',
  remote: 'http',
  local: 'stdio',
}

function explainTransport(entry: unknown): Words {
  const fields = isPlainObject(entry) ? entry : {}
  const { transport } = fields
  if (transport === undefined) {
    const meant = fields.command !== undefined ? 'stdio' : fields.url !== undefined ? 'http' : undefined
    return {
      message: 'is missing; it must be stdio, http or sse',
      suggestion: meant === undefined ? undefined : `transport: ${meant}`,
    }
  }
  const borrowed = typeof transport === 'string' ? borrowedTransports[transport] : undefined
  const words = toChoice(transports, transport)
  return borrowed === undefined ? words : { ...words, suggestion: borrowed }
}
