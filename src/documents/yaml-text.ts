import { Document, isCollection, isMap, isNode, isScalar, type Pair, type Scalar, visit } from 'yaml'
import { isListOfMaps } from './values.ts'

/** The layout of a YAML file, so that new lines match the existing ones. */
export type YamlStyle = {
  readonly eol: string
  /** Spaces per indentation level. */
  readonly step: number
  readonly indentSeq: boolean
  readonly padding: boolean
}

export function styleOf(text: string): YamlStyle {
  return {
    eol: /\r?\n/.exec(text)?.[0] ?? '\n',
    step: /^( +)[^\s#]/m.exec(text)?.[1]?.length ?? 2,
    indentSeq: !/^( *)[^\s#-][^\n]*:[ \t]*\r?\n\1- /m.test(text),
    padding: !/[{[][^\s}\]]/.test(text.replaceAll('${', '')),
  }
}

/** `key: value` on its own lines, indented by `column`, without a final line break. */
export function renderPair(key: string, value: unknown, column: number, style: YamlStyle): string {
  const document = new Document({ [key]: value })
  visit(document, {
    Seq(_, list) {
      if (isListOfMaps(list.toJSON())) for (const item of list.items) if (isCollection(item)) item.flow = true
      if (!isListOfMaps(list.toJSON())) list.flow = true
    },
  })
  const lines = toText(document, style).split('\n')
  return lines.map((line) => (line === '' ? '' : ' '.repeat(column) + line)).join(style.eol)
}

/** A value on one line, valid inside `{ … }`. A string keeps the quote style of the value before. */
export function renderInline(value: unknown, style: YamlStyle, before?: Scalar.Type): string {
  const document = new Document([value])
  visit(document, {
    Collection(_, node) {
      node.flow = true
    },
    Scalar(_, node) {
      if (before?.startsWith('QUOTE') && typeof node.value === 'string') node.type = before
    },
  })
  const outer = /^\[ ?(.*?) ?\]$/s.exec(toText(document, style))
  return outer?.[1] ?? ''
}

function toText(document: Document, { step, indentSeq, padding }: YamlStyle): string {
  const options = { lineWidth: 0, indent: step, indentSeq, flowCollectionPadding: padding }
  return document.toString(options).replace(/\n$/, '')
}

export function startOfLine(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1
}

/** The start of the line after this offset; the end of the text for the last line. */
export function startOfNextLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset)
  return end === -1 ? text.length : end + 1
}

/** The end of a node, without the comments and blank lines after it. */
export function endOf(node: unknown): number | undefined {
  if (isCollection(node) && !node.flow && node.items.length > 0) {
    const last: unknown = node.items.at(-1)
    return isMap(node) && isPair(last) ? endOfPair(last) : endOf(last)
  }
  return isNode(node) ? (node.range?.[1] ?? undefined) : undefined
}

export function endOfPair({ key, value }: Pair): number | undefined {
  return isEmpty(value) ? endOf(key) : endOf(value)
}

/** True for `key:` without a value. */
export function isEmpty(node: unknown): boolean {
  if (node === null || node === undefined) return true
  return isScalar(node) && node.value === null && node.range?.[0] === node.range?.[1]
}

/** The column of a key or entry that is the first on its line; undefined if other text is before it. */
export function columnOf(text: string, offset: number, before = /^ *$/): number | undefined {
  const start = startOfLine(text, offset)
  const indent = text.slice(start, offset)
  return before.test(indent) ? indent.length : undefined
}

/** Skips the comments that belong to a block: they are indented at least as far as its keys. */
export function skipComments(text: string, from: number, column: number): number {
  let end = from
  for (let at = from; at < text.length; at = startOfNextLine(text, at)) {
    if ((commentColumn(text, at) ?? -1) >= column) end = startOfNextLine(text, at)
    else if (!isBlankLine(text, at)) break
  }
  return end
}

/** The start of the comment directly above a key, which belongs to the key. */
export function aboveWithComment(text: string, start: number, column: number): number {
  let top = start
  while (top > 0) {
    const above = startOfLine(text, top - 1)
    if (commentColumn(text, above) !== column) break
    top = above
  }
  return top
}

function commentColumn(text: string, start: number): number | undefined {
  return /^( *)#/.exec(text.slice(start, startOfNextLine(text, start)))?.[1]?.length
}

export function isBlankLine(text: string, start: number): boolean {
  return text.slice(start, startOfNextLine(text, start)).trim() === ''
}

function isPair(value: unknown): value is Pair {
  return typeof value === 'object' && value !== null && 'key' in value && 'value' in value
}
