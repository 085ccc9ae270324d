import type { DocumentEdit } from './edit.ts'
import { DocumentError } from './error.ts'
import { beginsWith } from './parse-toml.ts'
import { scanToml, type TomlEntry } from './toml-lines.ts'
import { isListOfMaps, isPlainObject, type Path, type PlainObject, type Step, valueAt, withValueAt } from './values.ts'

/**
 * Changes only the lines of one table, `base`, because no TOML library keeps comments when it writes. `editDocument`
 * checks that the result has the wanted value.
 */
export function editToml(text: string, { steps, base, value }: DocumentEdit): string {
  let edited = text
  let wanted = value
  for (const step of steps) {
    wanted = withValueAt(wanted, step.path, step.value)
    edited = applyStep(edited, step, base, wanted)
  }
  return edited
}

function applyStep(text: string, { path, value }: Step, base: Path, wanted: unknown): string {
  const entries = scanToml(text)
  const lines = createLines(text)
  const holder = entries.find((entry) => entry.kind === 'value' && beginsWith(path, entry.path))
  if (holder !== undefined) {
    if (holder.path.length < base.length) {
      throw new DocumentError(`is written inline; write it as a table [${toTomlPath(base)}]`)
    }
    const whole = valueAt(wanted, holder.path)
    if (whole === undefined) return lines.replace(holder.first, holder.last, [])
    const beside = text.slice(holder.end).split(/\r?\n/, 1)[0] ?? ''
    return lines.replace(holder.first, holder.last, [toLine(holder, holder.path, whole) + beside])
  }
  if (value === undefined) return removeAll(text, path)
  if (isListOfMaps(value)) return appendList(removeAll(text, path), path, value)
  if (base.length === 0 && path.length === 1) return addTopLevel(lines, entries, path, value)
  const table = entries.findLast(({ kind, path: header }) => {
    return kind === 'table' && header.length >= base.length && header.length < path.length && beginsWith(path, header)
  })
  const neighbour = table ?? entries.findLast((entry) => entry.kind === 'value' && beginsWith(entry.path, base))
  if (neighbour !== undefined) {
    return lines.replace(lastLineOf(entries, neighbour) + 1, lastLineOf(entries, neighbour), [
      toLine(neighbour, path, value),
    ])
  }
  const sibling = entries.findLast((entry) => beginsWith(entry.path, base.slice(0, -1)))
  const end = sibling === undefined ? lines.lastWritten() : lastLineOf(entries, sibling)
  return lines.replace(end + 1, end, ['', ...toBlock(base, value)])
}

/** A value of no table: after such values, else above all tables. */
function addTopLevel(
  lines: ReturnType<typeof createLines>,
  entries: readonly TomlEntry[],
  path: Path,
  value: unknown,
): string {
  const line = `${toTomlPath(path)} = ${toTomlValue(value)}`
  const last = entries.findLast(({ kind, table }) => kind === 'value' && table.length === 0)
  return last ? lines.replace(last.last + 1, last.last, [line]) : lines.replace(0, -1, [line, ''])
}

/** Appends the tables at the end of the text, where they cannot become part of another table. */
function appendList(text: string, path: Path, tables: readonly PlainObject[]): string {
  const lines = createLines(text)
  const end = lines.lastWritten()
  const blocks = tables.flatMap((table) => ['', `[${toBlock(path, table)[0]}]`, ...toBlock(path, table).slice(1)])
  return lines.replace(end + 1, end, end === -1 ? blocks.slice(1) : blocks)
}

/** Lines with their line breaks: a file may mix both kinds, and its last line may have none. */
function createLines(text: string) {
  const eol = /\r?\n/.exec(text)?.[0] ?? '\n'
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
  return {
    at: (index: number) => lines[index],
    lastWritten: () => lines.findLastIndex((line) => line.trim() !== ''),
    /** Replaces the lines from `first` to `last` with `inserted`. Only inserts if `last` is smaller than `first`. */
    replace(first: number, last: number, inserted: readonly string[]): string {
      const ends = lines.map((line) => /\r?\n$/.exec(line)?.[0] ?? eol)
      const before = lines.slice(0, first).map((line, index) => line.replace(/\r?\n$/, '') + ends[index])
      const written = inserted.map((line, index) => line + (last >= first ? (ends[first + index] ?? eol) : eol))
      const whole = [...before, ...written, ...lines.slice(last + 1)].join('')
      return text.endsWith('\n') || last + 1 < lines.length ? whole : whole.replace(/\r?\n$/, '')
    },
  }
}

/** The last line of the values of a table, or of a single value. */
function lastLineOf(entries: readonly TomlEntry[], entry: TomlEntry): number {
  const start = entries.indexOf(entry)
  const next = entries.findIndex(({ kind }, index) => index > start && kind !== 'value')
  const block = entries.slice(start, next === -1 ? undefined : next)
  return Math.max(...block.map(({ last }) => last))
}

/** Removes every table below a path, and every value below it that is written in another table. */
function removeAll(text: string, path: Path): string {
  const entries = scanToml(text)
  const doomed = entries.findLast(
    ({ kind, path: at, table }) => beginsWith(at, path) && (kind !== 'value' || !beginsWith(table, path)),
  )
  if (doomed === undefined) return text
  const lines = createLines(text)
  if (doomed.kind === 'value') return removeAll(lines.replace(doomed.first, doomed.last, []), path)
  let start = doomed.first
  // A comment directly above a header belongs to the header. The blank line above the comment is removed too.
  while (
    start > 0 &&
    lines
      .at(start - 1)
      ?.trim()
      .startsWith('#')
  )
    start--
  if (start > 0 && lines.at(start - 1)?.trim() === '') start--
  return removeAll(lines.replace(start, lastLineOf(entries, doomed), []), path)
}

function toLine(entry: TomlEntry, path: Path, value: unknown): string {
  return `${' '.repeat(entry.kind === 'value' ? entry.column - 1 : 0)}${toTomlPath(path.slice(entry.table.length))} = ${toTomlValue(value)}`
}

function toBlock(path: Path, value: unknown): string[] {
  const fields = isPlainObject(value) ? Object.entries(value) : []
  return [`[${toTomlPath(path)}]`, ...fields.map(([key, field]) => `${toTomlPath([key])} = ${toTomlValue(field)}`)]
}

export function toTomlPath(path: Path): string {
  return path.map((name) => (/^[A-Za-z0-9_-]+$/.test(String(name)) ? name : toTomlValue(String(name)))).join('.')
}

function toTomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toTomlValue).join(', ')}]`
  if (isPlainObject(value)) {
    const fields = Object.entries(value).map(([key, field]) => `${toTomlPath([key])} = ${toTomlValue(field)}`)
    return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
  }
  return JSON.stringify(value).replaceAll('\u007f', '\\u007f')
}
