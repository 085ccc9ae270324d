import {
  type Document,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Pair,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import { readYaml } from './parse-yaml.ts'
import { isListOfMaps, isPlainObject, isSame, type Path, type PlainObject, type Step, withValueAt } from './values.ts'
import {
  aboveWithComment,
  columnOf,
  endOf,
  endOfPair,
  isBlankLine,
  isEmpty,
  renderInline,
  renderPair,
  skipComments,
  startOfLine,
  startOfNextLine,
  styleOf,
  type YamlStyle,
} from './yaml-text.ts'

/** Changes single values and keeps every other byte. */
export function editYaml(text: string, steps: readonly Step[]): string {
  return toGroups(steps).reduce((edited, group) => editGroup(edited, group), text)
}

function editGroup(text: string, steps: readonly Step[]): string {
  const [first, ...others] = steps
  if (first === undefined) return text
  const spliced = others.length === 0 ? splice(text, first) : spliceEntries(text, steps)
  if (spliced !== undefined && hasChange(spliced, text, steps)) return spliced
  if (others.length > 0) return steps.reduce((edited, step) => editGroup(edited, [step]), text)
  // Anchors, tags and unusual layouts cannot be spliced. Then the whole document is written again, with its comments
  // and its order.
  return rewrite(text, first)
}

/** Each piece that is written costs several readings of the text, so many entries of one map are written together. */
function toGroups(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = []
  for (const step of steps) {
    const last = groups.at(-1)
    if (last?.[0] && step.value !== undefined && last[0].value !== undefined && isBeside(step.path, last[0].path))
      last.push(step)
    else groups.push([step])
  }
  return groups
}

function isBeside(path: Path, other: Path): boolean {
  return path.length === other.length && path.slice(0, -1).every((segment, index) => segment === other[index])
}

/** The text with several new entries in one map; undefined if an entry exists, or if the map does not exist. */
function spliceEntries(text: string, steps: readonly Step[]): string | undefined {
  const path = steps[0]?.path.slice(0, -1) ?? []
  const map = path.length === 0 ? readYaml(text).contents : readYaml(text).getIn(path, true)
  if (!isMap(map) || map.items.length === 0) return undefined
  const entries = steps.map(({ path: at, value }): Entry => [String(at.at(-1)), value])
  const names = new Set(entries.map(([name]) => name))
  if (map.items.some(({ key }) => isScalar(key) && names.has(String(key.value)))) return undefined
  return addPairs({ text, style: styleOf(text) }, map, entries)
}

function hasChange(after: string, before: string, steps: readonly Step[]): boolean {
  const read = (text: string): unknown => readYaml(text).toJS({ maxAliasCount: 100 })
  const wanted = steps.reduce((root, { path, value }) => withValueAt(root, path, value), read(before))
  return readYaml(after).errors.length === 0 && isSame(read(after), wanted)
}

type Found = { readonly map: YAMLMap; readonly pair: Pair }
type Scene = { readonly text: string; readonly style: YamlStyle }

/** The text with one value changed; undefined if that cannot be done by replacing one piece of the text. */
function splice(text: string, { path, value }: Step): string | undefined {
  const document = readYaml(text)
  const scene = { text, style: styleOf(text) }
  const chain: Found[] = []
  let node: unknown = document.contents
  for (const name of path) {
    const map = node
    if (!isMap(map)) break
    const pair = map.items.find(({ key }) => isScalar(key) && key.value === String(name))
    if (pair === undefined) break
    chain.push({ map, pair })
    node = pair.value
  }
  const last = chain.at(-1)
  if (chain.length === path.length && last !== undefined) {
    return value === undefined ? removePair(scene, chain) : replaceValue(scene, last, value)
  }
  if (value === undefined) return text
  const key = String(path[chain.length])
  const nested = withValueAt({}, path.slice(chain.length + 1), value)
  if (isMap(node) && node.items.length > 0) return addPairs(scene, node, [[key, nested]])
  return last && openMap(scene, last, { [key]: nested })
}

function exchange(text: string, from: number, to: number, piece: string): string {
  return text.slice(0, from) + piece + text.slice(to)
}

/** Inserts whole lines at the beginning of a line. A text without a final line break stays without one. */
function insertLines({ text, style }: Scene, at: number, lines: string): string {
  const endsOpen = at === text.length && at > 0 && text[at - 1] !== '\n'
  return exchange(text, at, at, endsOpen ? style.eol + lines : lines + style.eol)
}

type Entry = readonly [key: string, value: unknown]

function addPairs(scene: Scene, map: YAMLMap, entries: readonly Entry[]): string | undefined {
  const { text, style } = scene
  const [first, last] = [map.items[0], map.items.at(-1)]
  const end = last && endOfPair(last)
  const start = first && isNode(first.key) ? first.key.range?.[0] : undefined
  if (end === undefined || start === undefined) return undefined
  const column = columnOf(text, start)
  if (map.flow) {
    const gap = column === undefined ? ' ' : style.eol + ' '.repeat(column)
    const pairs = entries.map(([key, value]) => {
      return `,${gap}${renderInline({ [key]: value }, { ...style, padding: false }).slice(1, -1)}`
    })
    return exchange(text, end, end, pairs.join(''))
  }
  if (column === undefined) return undefined
  // Comments that are indented deeper belong to the entry before. Comments in the same column belong to the next entry.
  const at = skipComments(text, afterLine(text, end), column + 1)
  return insertLines(scene, at, entries.map(([key, value]) => renderPair(key, value, column, style)).join(style.eol))
}

/** A block scalar (`|`) already ends with a line break. */
function afterLine(text: string, end: number): number {
  return text[end - 1] === '\n' ? end : startOfNextLine(text, end)
}

/** Adds the first entry of an empty map, written as `key: {}` or `key:`. */
function openMap(scene: Scene, { map, pair }: Found, entries: PlainObject): string | undefined {
  const { text, style } = scene
  const colon = findColon(text, pair)
  if (colon === undefined || isMarked(pair.value)) return undefined
  const end = isEmpty(pair.value) ? colon : endOf(pair.value)
  if (end === undefined || !/^\s*(\{\s*\})?$/.test(text.slice(colon, end))) return undefined
  if (map.flow) return exchange(text, colon, end, ` ${renderInline(entries, style)}`)
  const column = isNode(pair.key) ? columnOf(text, pair.key.range?.[0] ?? 0) : undefined
  const [[key, value] = ['', undefined]] = Object.entries(entries)
  if (column === undefined) return undefined
  const opened = exchange(text, colon, end, '')
  return insertLines(
    { text: opened, style },
    startOfNextLine(opened, colon),
    renderPair(key, value, column + style.step, style),
  )
}

/** The position after the `:` of a pair. */
function findColon(text: string, { key }: Pair): number | undefined {
  const end = endOf(key)
  const colon = end === undefined ? null : /^[ \t]*:/.exec(text.slice(end))
  return end === undefined || colon === null ? undefined : end + colon[0].length
}

/** The range of a node does not include its anchor or tag, so such a node cannot be replaced by its range. */
function isMarked(node: unknown): boolean {
  return isNode(node) && (('anchor' in node && node.anchor !== undefined) || node.tag !== undefined)
}

function replaceValue(scene: Scene, found: Found, value: unknown): string | undefined {
  const { text, style } = scene
  const { map, pair } = found
  const before: unknown = pair.value
  if (isMarked(before) && !isListOfMaps(value)) return undefined
  if (isListOfMaps(value) && isSeq(before) && !before.flow) return replaceEntries(scene, before, value)
  const from = isNode(pair.key) ? pair.key.range?.[0] : undefined
  const to = endOfPair(pair)
  const colon = findColon(text, pair)
  if (from === undefined || to === undefined || colon === undefined) return undefined
  const isInline = isScalar(before) ? !before.type?.startsWith('BLOCK') : isCollection(before) && before.flow
  const staysInline = map.flow || (!isListOfMaps(value) && (!isPlainObject(value) || isCollection(before)))
  if (isInline && staysInline) {
    const inline = renderInline(value, style, isScalar(before) ? before.type : undefined)
    if (isEmpty(before)) return exchange(text, colon, colon, ` ${inline}`)
    return exchange(text, isNode(before) ? (before.range?.[0] ?? to) : to, to, inline)
  }
  const column = columnOf(text, from)
  if (map.flow || column === undefined) return undefined
  const lines = renderPair(String(isScalar(pair.key) ? pair.key.value : ''), value, column, style)
  return exchange(text, startOfLine(text, from), to, text[to - 1] === '\n' ? lines + style.eol : lines)
}

/** Entries that stay keep their text, with the comments above them. New entries get one line each. */
function replaceEntries({ text, style }: Scene, list: YAMLSeq, wanted: readonly PlainObject[]): string | undefined {
  const starts = list.items.map((item) => (isNode(item) ? item.range?.[0] : undefined))
  const [first] = starts
  const end = endOf(list)
  if (first === undefined || end === undefined || starts.some((start) => !hasDash(text, start))) return undefined
  const column = /^ */.exec(text.slice(startOfLine(text, first)))?.[0].length ?? 0
  const top = aboveWithComment(text, startOfLine(text, first), column)
  const ends = list.items.map((item) => afterLine(text, endOf(item) ?? end))
  const pieces = list.items.map((item, index) => ({
    value: isNode(item) ? item.toJSON() : item,
    text: withEol(text.slice(index === 0 ? top : ends[index - 1], ends[index]), style),
  }))
  const lines = wanted.map((value) => {
    const kept = pieces.findIndex((piece) => isSame(piece.value, value))
    if (kept !== -1) return pieces.splice(kept, 1)[0]?.text ?? ''
    return `${' '.repeat(column)}- ${renderInline(value, style)}${style.eol}`
  })
  const bottom = ends.at(-1) ?? end
  const whole = lines.join('')
  return exchange(text, top, bottom, text[bottom - 1] === '\n' ? whole : whole.replace(/\r?\n$/, ''))
}

function hasDash(text: string, start: number | undefined): boolean {
  return start !== undefined && columnOf(text, start, /^ *- *$/) !== undefined
}

function withEol(lines: string, { eol }: YamlStyle): string {
  return lines.endsWith('\n') ? lines : lines + eol
}

function removePair(scene: Scene, chain: readonly Found[]): string | undefined {
  const { text } = scene
  const [parent, found] = [chain.at(-2), chain.at(-1)]
  if (found === undefined) return undefined
  const { map, pair } = found
  const from = isNode(pair.key) ? pair.key.range?.[0] : undefined
  const to = endOfPair(pair)
  if (from === undefined || to === undefined) return undefined
  if (map.flow) return removeInline(text, found, { from, to })
  const column = columnOf(text, from)
  if (column === undefined) return undefined
  const less = removeLines(text, aboveWithComment(text, startOfLine(text, from), column), afterLine(text, to), column)
  if (map.items.length > 1) return less
  const colon = parent && findColon(text, parent.pair)
  if (colon === undefined || isMarked(map)) return undefined
  return exchange(less, colon, colon, ' {}')
}

/** Also removes the comments that are indented deeper, and one of two blank lines that would become adjacent. */
function removeLines(text: string, top: number, bottom: number, column: number): string {
  const end = skipComments(text, bottom, column + 1)
  const above = startOfLine(text, top - 1)
  const doubled = top > 0 && isBlankLine(text, above) && (end >= text.length || isBlankLine(text, end))
  const less = exchange(text, doubled ? above : top, end, '')
  return text.endsWith('\n') || end < text.length ? less : less.replace(/\r?\n$/, '')
}

function removeInline(
  text: string,
  { map, pair }: Found,
  { from, to }: { from: number; to: number },
): string | undefined {
  const index = map.items.indexOf(pair)
  const [before, after] = [map.items[index - 1], map.items[index + 1]]
  const next = after && isNode(after.key) ? after.key.range?.[0] : undefined
  if (next !== undefined) return exchange(text, from, next, '')
  const end = before && endOfPair(before)
  if (end !== undefined) return exchange(text, end, to, '')
  const [start, close] = map.range ?? []
  return start === undefined || close === undefined ? undefined : exchange(text, start, close, '{}')
}

/** Writes the whole document again. Comments, order and most of the layout are kept. */
function rewrite(text: string, { path, value }: Step): string {
  const document = readYaml(text)
  if (value === undefined) document.deleteIn(path)
  else setValue(document, path, value)
  const { step, indentSeq, padding } = styleOf(text)
  const edited = document.toString({ lineWidth: 0, indent: step, indentSeq, flowCollectionPadding: padding })
  return text.includes('\r\n') ? edited.replaceAll('\n', '\r\n') : edited
}

function setValue(document: Document, path: Path, value: unknown): void {
  openEmptyMaps(document, path)
  if (typeof value !== 'object' || value === null) {
    const before: unknown = document.getIn(path, true)
    // The style of the old value is kept, except a block scalar, which cannot represent every short text.
    if (isScalar(before) && before.type?.startsWith('BLOCK')) before.type = 'QUOTE_DOUBLE'
    document.setIn(path, value)
    return
  }
  const node = document.createNode(value)
  visit(node, {
    Seq(_, list) {
      list.flow = !isListOfMaps(list.toJSON())
      if (!list.flow) for (const item of list.items) if (isCollection(item)) item.flow = true
    },
  })
  document.setIn(path, node)
}

/** An empty map is written as `key: {}`. Its first entries are written on their own lines. */
function openEmptyMaps(document: Document, path: Path): void {
  for (let length = 0; length < path.length; length++) {
    const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
    if (isMap(node) && node.items.length === 0) node.flow = false
  }
}
