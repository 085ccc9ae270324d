import { findNodeAtLocation, type Node, parseTree } from 'jsonc-parser'
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
  if (!last) {
    const { eol, step } = styleOf(text)
    const indent = indentAt(text, object.offset)
    const piece = `{${eol}${indent}${step}${property}${toLines(text, value, indent + step)}${eol}${indent}}`
    return exchange(text, object, piece)
  }
  const ownLine = /\n[ \t]*$/.exec(text.slice(0, last.offset))
  const gap = ownLine ? `${styleOf(text).eol}${indentAt(text, last.offset)}` : ' '
  return exchange(text, { offset: endOf(last), length: 0 }, `,${gap}${property}${render(text, value, last)}`)
}

function removeProperty(text: string, property: Node): string {
  const siblings = property.parent?.children ?? []
  const index = siblings.indexOf(property)
  const [before, after] = [siblings[index - 1], siblings[index + 1]]
  if (before) return exchange(text, { offset: endOf(before), length: endOf(property) - endOf(before) }, '')
  if (after) return exchange(text, { offset: property.offset, length: after.offset - property.offset }, '')
  return property.parent ? exchange(text, property.parent, '{}') : text
}

/** Writes the value on one line if its neighbour is on one line, else with the indentation of the file. */
function render(text: string, value: unknown, neighbour: Node): string {
  const inOneLine = !/\n[ \t]*$/.test(text.slice(0, neighbour.offset))
  if (inOneLine) return JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ')
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
