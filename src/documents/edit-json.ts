import { createScanner, findNodeAtLocation, type Node, parseTree } from 'jsonc-parser'
import { type Path, type Step, withValueAt } from './values.ts'

/** Changes single values and keeps every other byte. */
export function editJson(text: string, steps: readonly Step[]): string {
  return steps.reduce((edited, { path, value }) => applyStep(edited, path, value), text)
}

function applyStep(text: string, path: Path, value: unknown): string {
  const root = parseTree(text)
  const depth = path.findIndex((_, index) => !root || !findNodeAtLocation(root, path.slice(0, index + 1)))
  if (!root) return text
  if (depth === -1) {
    const node = findNodeAtLocation(root, [...path])
    if (!node) return text
    if (value === undefined) return node.parent ? removeProperty(text, node.parent) : text
    return exchange(text, node, render(text, value, node.parent ?? node))
  }
  if (value === undefined) return text
  const holder = findNodeAtLocation(root, path.slice(0, depth)) ?? root
  return addProperty(text, holder, String(path[depth]), withValueAt({}, path.slice(depth + 1), value))
}

type Span = { readonly offset: number; readonly length: number }

function exchange(text: string, { offset, length }: Span, piece: string): string {
  return text.slice(0, offset) + piece + text.slice(offset + length)
}

/** Adds the property on a new line if the object spans several lines, else after the last property. */
function addProperty(text: string, object: Node, key: string, value: unknown): string {
  const last = object.children?.at(-1)
  const property = `${JSON.stringify(key)}: `
  if (!last) return addFirst(text, object, (indent) => property + toLines(text, value, indent))
  const comma = findComma(text, endOf(last))
  const start = comma === undefined ? endOf(last) : comma + 1
  const isOwnLine = startsLine(text, last.offset)
  const gap = isOwnLine ? `${styleOf(text).eol}${indentAt(text, last.offset)}` : ' '
  // A comment after the last property, on the same line, belongs to that property.
  const at = isOwnLine ? endOfComments(text, start) : start
  const piece = `${gap}${property}${render(text, value, last)}${comma === undefined ? '' : ','}`
  const added = exchange(text, { offset: at, length: 0 }, piece)
  return comma === undefined ? exchange(added, { offset: endOf(last), length: 0 }, ',') : added
}

function addFirst(text: string, object: Node, toProperty: (indent: string) => string): string {
  const { eol, step } = styleOf(text)
  const indent = indentAt(text, object.offset)
  const content = text.slice(object.offset + 1, endOf(object) - 1)
  if (content.trim() === '') {
    return exchange(text, object, `{${eol}${indent}${step}${toProperty(indent + step)}${eol}${indent}}`)
  }
  const gap = content.includes('\n') ? `${eol}${indent}${step}` : ' '
  return exchange(text, { offset: object.offset + 1, length: 0 }, gap + toProperty(indent + step))
}

/** Removes the property and one comma. Comments around it stay. */
function removeProperty(text: string, property: Node): string {
  const object = property.parent
  const siblings = object?.children ?? []
  const before = siblings[siblings.indexOf(property) - 1]
  const after = findComma(text, endOf(property))
  if (!before && after === undefined && object && !/\/[/*]/.test(text.slice(object.offset, property.offset))) {
    const rest = text.slice(endOf(property), endOf(object) - 1)
    if (rest.trim() === '') return exchange(text, object, '{}')
  }
  const end = after === undefined ? endOf(property) : after + 1
  const inside = text.slice(endOf(property), end).replace(',', '')
  const removed = removeSpan(text, property.offset, end, inside.trim() === '' ? '' : inside.trim())
  const comma = before && after === undefined ? findComma(text, endOf(before)) : undefined
  return comma === undefined ? removed : exchange(removed, { offset: comma, length: 1 }, '')
}

/** Replaces a span, and removes its line if nothing else is on it. */
function removeSpan(text: string, start: number, end: number, kept: string): string {
  const blank = /[ \t]*(\r?\n)?/y
  blank.lastIndex = end
  const [spaces = '', lineBreak] = blank.exec(text) ?? []
  const next = end + spaces.length
  if (!startsLine(text, start)) {
    const gap = /[ \t]*$/.exec(text.slice(0, start))?.[0].length ?? 0
    if (kept !== '') return exchange(text, { offset: start, length: end - start }, kept)
    const isLast = text[next] === '}' || lineBreak !== undefined
    return exchange(
      text,
      { offset: isLast ? start - gap : start, length: (isLast ? end : next) - start + (isLast ? gap : 0) },
      '',
    )
  }
  if (kept === '' && lineBreak !== undefined) {
    const line = /\r?\n[ \t]*$/.exec(text.slice(0, start))?.index ?? start
    return exchange(text, { offset: line, length: next - lineBreak.length - line }, '')
  }
  return exchange(text, { offset: start, length: next - start }, kept === '' ? '' : `${kept}${spaces}`)
}

/** The offset of the comma after a property, which comments may precede. */
function findComma(text: string, from: number): number | undefined {
  const scanner = createScanner(text, true)
  scanner.setPosition(from)
  scanner.scan()
  return text[scanner.getTokenOffset()] === ',' ? scanner.getTokenOffset() : undefined
}

/** The end of the comments that begin on this line and end on it. */
function endOfComments(text: string, from: number): number {
  const comments = /(?:[ \t]*\/\*(?:[^*\n]|\*(?!\/))*\*\/)*(?:[ \t]*\/\/[^\r\n]*)?/y
  comments.lastIndex = from
  return from + (comments.exec(text)?.[0].length ?? 0)
}

function startsLine(text: string, offset: number): boolean {
  return /\n[ \t]*$/.test(text.slice(0, offset))
}

/** Writes the value on one line if its neighbour is on one line, else with the indentation of the file. */
function render(text: string, value: unknown, neighbour: Node): string {
  if (!startsLine(text, neighbour.offset)) return JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ')
  return toLines(text, value, indentAt(text, neighbour.offset))
}

function toLines(text: string, value: unknown, indent: string): string {
  const { eol, step } = styleOf(text)
  return JSON.stringify(value, null, step).replaceAll('\n', eol + indent)
}

function styleOf(text: string): { eol: string; step: string } {
  return { eol: /\r?\n/.exec(text)?.[0] ?? '\n', step: /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ' }
}

function indentAt(text: string, offset: number): string {
  return /[ \t]*/y.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1))?.[0] ?? ''
}

function endOf({ offset, length }: Span): number {
  return offset + length
}
