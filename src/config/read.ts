import { isUtf8 } from 'node:buffer'
import { readFile, stat } from 'node:fs/promises'
import { RuleSet } from '../contract/api/rules.ts'
import { Config } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { toSystemReason } from '../contract/system-error.ts'
import { findFormat, type Parsed, parseText } from '../documents/parse.ts'
import type { Position } from '../documents/position.ts'
import { type Path, toKey } from '../documents/values.ts'
import { checkConfig, listNotices } from './check.ts'
import { explainIssues } from './explain.ts'
import { type ConfigProblem, type Finding, formatProblem, toConfigError } from './problems.ts'
import { withCurrentNames } from './renamed.ts'
import { respell } from './spellings.ts'

export type Reading =
  | {
      readonly ok: true
      readonly config: Config
      /** The value of the file in our own spelling, without defaults. */
      readonly value: unknown
      /** Accepted spellings of other programs, each with the form to write instead. */
      readonly spellings: readonly ConfigProblem[]
      /** Warnings about valid settings that are probably not intended, at that time. */
      notices(now: number): readonly ConfigProblem[]
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

/** Reads a file from disk. Throws `config-unreadable` if it does not exist or cannot be read. */
export async function readConfig(file: string): Promise<Reading> {
  const text = await readText(file)
  return typeof text === 'string' ? parseConfig(file, text) : { ok: false, problems: [text] }
}

/** Throws if the file contains a mistake. */
export async function demandValid(file: string): Promise<void> {
  const reading = await readConfig(file)
  if (!reading.ok) throw toConfigError(reading.problems)
}

/** The rules of a file: a whole configuration, or a file that contains only rules. */
export async function readRuleSet(file: string): Promise<RuleSet> {
  const text = await readText(file)
  if (typeof text !== 'string') throw toConfigError([text])
  const parsing = parseText(findFormat(file) ?? 'yaml', text)
  if (!parsing.ok)
    throw toConfigError(parsing.faults.map(({ position, ...fault }) => ({ file, ...position, ...fault })))
  const { value, locate } = parsing.parsed
  const forbidden = findForbidden(value)
  const parsed = RuleSet.safeParse(value)
  if (parsed.success && forbidden.length === 0) return parsed.data
  const findings = parsed.success ? forbidden : [...forbidden, ...explainIssues(parsed.error.issues, value)]
  throw toConfigError(findings.map((finding) => toProblem(file, finding, locate)))
}

/** The text of a file, or the problem if it is not valid text. */
export async function readText(file: string): Promise<string | ConfigProblem> {
  const bytes = await readBytes(file)
  if (bytes === undefined) return { file, line: 1, key: '', message: `is larger than ${mostBytes / 1_048_576} MB` }
  const nul = bytes.indexOf(0)
  if (nul !== -1) return { file, line: lineOf(bytes, nul), key: '', message: 'contains a NUL character' }
  if (isUtf8(bytes)) return new TextDecoder('utf-8').decode(bytes)
  return { file, line: lineOf(bytes, findBadByte(bytes)), key: '', message: 'is not UTF-8 text' }
}

const mostBytes = 4 * 1_048_576

async function readBytes(file: string): Promise<Buffer | undefined> {
  try {
    const { size, isFile } = await stat(file).then((stats) => ({ size: stats.size, isFile: stats.isFile() }))
    if (!isFile) throw new GatewayError('config-unreadable', `${file} is not a file`, { file })
    if (size > mostBytes) return undefined
    const bytes = await readFile(file)
    return bytes.length > mostBytes ? undefined : bytes
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError(
      'config-unreadable',
      `${file} cannot be read: ${toReason(error)}`,
      { file },
      { cause: error },
    )
  }
}

export function toReason(error: unknown): string {
  const isMounted = error instanceof Error && 'code' in error && error.code === 'EBUSY'
  return isMounted ? 'the file itself is mounted; mount its folder instead' : toSystemReason(error)
}

function lineOf(bytes: Buffer, offset: number): number {
  let line = 1
  for (const byte of bytes.subarray(0, offset)) if (byte === 0x0a) line++
  return line
}

/** In UTF-8 a line break is never a part of another character, so each line can be checked separately. */
function findBadByte(bytes: Buffer): number {
  let start = 0
  while (start < bytes.length) {
    const end = bytes.indexOf(0x0a, start)
    if (end === -1 || !isUtf8(bytes.subarray(start, end))) break
    start = end + 1
  }
  return start
}

/** Checks a whole text: the syntax, the spellings of other programs, every field, the references between fields. */
export function parseConfig(file: string, text: string): Reading {
  const format = findFormat(file)
  if (format === undefined) return broken(file, 'must end in .yaml, .yml, .json or .toml')
  const parsing = parseText(format, text)
  if (!parsing.ok) {
    return rejected(parsing.faults.map(({ position, key, message }) => ({ file, ...position, key, message })))
  }
  const { value: written, locate } = parsing.parsed
  const placeWritten = (finding: Finding) => toProblem(file, finding, locate)
  if (written === null || written === undefined)
    return broken(file, 'contains no settings; write {} for an empty configuration')
  const forbidden = findForbidden(written)
  if (forbidden.length > 0) return rejected(forbidden.map(placeWritten))
  const spelled = respell(written)
  if (spelled.faults.length > 0) return rejected(spelled.faults.map(placeWritten))
  const { value } = spelled
  const place = (finding: Finding) => placeWritten({ ...finding, path: spelled.toWritten(finding.path) })
  const toProblems = (findings: readonly Finding[]): Reading => rejected(findings.map(place))
  const parsed = Config.safeParse(withCurrentNames(value))
  if (!parsed.success) return toProblems(explainIssues(parsed.error.issues, value))
  const findings = checkConfig(parsed.data)
  if (findings.length > 0) return toProblems(findings)
  const config = withoutEmptyTls(parsed.data)
  const spellings = spelled.notices.map(placeWritten)
  return {
    ok: true,
    config,
    value,
    spellings,
    notices: (now) => [...spellings, ...listNotices(config, now).map(place)],
  }
}

/** The position of a key in a text that was read before. */
export function locateKey({ file, text }: { file: string; text: string }, path: Path): Position {
  const parsing = parseText(findFormat(file) ?? 'yaml', text)
  return parsing.ok ? parsing.parsed.locate(path) : { line: 1, column: 1 }
}

export function toProblem(
  file: string,
  { path, message, suggestion }: Finding,
  locate: Parsed['locate'],
): ConfigProblem {
  const problem = { file, ...locate(path), key: toKey(path), message }
  return suggestion === undefined ? problem : { ...problem, suggestion }
}

/** Problems in the order of the file, without duplicates. */
function rejected(problems: readonly ConfigProblem[]): Reading {
  const distinct = new Map(problems.map((problem) => [formatProblem(problem), problem]))
  return { ok: false, problems: [...distinct.values()].sort((left, right) => left.line - right.line) }
}

function broken(file: string, message: string): Reading {
  return { ok: false, problems: [{ file, line: 1, key: '', message }] }
}

/** Values that the schema accepts but later code might not: `__proto__` keys, lone surrogates and inexact numbers. */
export function findForbidden(root: unknown): Finding[] {
  const seen = new Set<unknown>()
  const visit = (value: unknown, path: Path): Finding[] => {
    if (typeof value === 'number' && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER))
      return [{ path, message: 'is a number that cannot be stored exactly; write it as text' }]
    if (typeof value === 'string' && !value.isWellFormed())
      return [{ path, message: 'contains half of a surrogate pair, which is not valid Unicode' }]
    if (typeof value !== 'object' || value === null || seen.has(value)) return []
    seen.add(value)
    return Object.entries(value).flatMap(([key, entry]) => {
      const here = [...path, Array.isArray(value) ? Number(key) : key]
      if (key === '__proto__' || !key.isWellFormed()) return [{ path: here, message: 'is not an allowed key' }]
      return visit(entry, here)
    })
  }
  return visit(root, [])
}

/** Two empty file names mean that TLS is off. */
function withoutEmptyTls(config: Config): Config {
  const { tls, ...listen } = config.listen
  return tls?.cert === '' ? { ...config, listen } : config
}
