import { Config } from '../contract/config.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { type Parsed, parseText } from '../documents/parse.ts'
import { isPlainObject, own } from '../documents/values.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { checkConfig } from './check.ts'
import { explainIssues } from './explain.ts'
import type { ConfigProblem, Finding } from './problems.ts'
import { findForbidden, toProblem } from './read.ts'
import { respell } from './spellings.ts'

/** The servers of a file of the form `{"mcpServers": {...}}`. */
export type ServerFileReading =
  | {
      readonly ok: true
      readonly servers: Readonly<Record<string, ServerDefinition>>
      /** Settings that have no effect here, such as rules, trust and risks. */
      readonly ignored: readonly string[]
      /** The text of all entries. Two files with the same text are the same to a reader who confirms them. */
      readonly entries: string
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

const known: ReadonlySet<string> = new Set([
  ...['transport', 'type', 'command', 'args', 'env', 'environment', 'cwd'],
  ...['url', 'serverUrl', 'httpUrl', 'headers', 'title', 'description', 'enabled', 'disabled'],
])

/** Reads JSON only. Everything that could lower a risk or a limit is left out and named in `ignored`. */
export function parseServerFile(file: string, text: string): ServerFileReading {
  const parsing = parseText('json', text)
  if (!parsing.ok) {
    return { ok: false, problems: parsing.faults.map(({ position, ...fault }) => ({ file, ...position, ...fault })) }
  }
  const { value, locate } = parsing.parsed
  const fail = (findings: readonly Finding[]) => failed(file, findings, locate)
  const forbidden = findForbidden(value)
  if (forbidden.length > 0) return fail(forbidden)
  const written = isPlainObject(value) ? own(value, 'mcpServers') : undefined
  if (!isPlainObject(value) || !isPlainObject(written))
    return fail([{ path: ['mcpServers'], message: 'is missing; it must be a map of servers by name' }])
  const picked = pick(written)
  const spelled = respell({ mcpServers: picked.entries })
  if (spelled.faults.length > 0) return fail(spelled.faults)
  const place = ({ path, ...finding }: Finding): Finding => ({ ...finding, path: spelled.toWritten(path) })
  const parsed = Config.safeParse(spelled.value)
  if (!parsed.success) return fail(explainIssues(parsed.error.issues, spelled.value).map(place))
  const findings = checkConfig(parsed.data)
  if (findings.length > 0) return fail(findings.map(place))
  const outside = Object.keys(value).filter((key) => key !== 'mcpServers' && key !== '$schema')
  return {
    ok: true,
    servers: parsed.data.servers,
    ignored: [...outside, ...picked.ignored],
    entries: toCanonicalText(written),
  }
}

function pick(written: Readonly<Record<string, unknown>>) {
  const ignored: string[] = []
  const entries = Object.entries(written).map(([name, entry]): [string, unknown] => {
    if (!isPlainObject(entry)) return [name, entry]
    const fields = Object.entries(entry).filter(([key]) => {
      if (!known.has(key)) ignored.push(`mcpServers.${name}.${key}`)
      return known.has(key)
    })
    return [name, Object.fromEntries(fields)]
  })
  return { entries: Object.fromEntries(entries), ignored }
}

function failed(file: string, findings: readonly Finding[], locate: Parsed['locate']): ServerFileReading {
  return { ok: false, problems: findings.map((finding) => toProblem(file, finding, locate)) }
}
