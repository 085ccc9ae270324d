import { type Document, isCollection, isMap, isNode, isScalar, isSeq, visit, type YAMLSeq } from 'yaml'
import type { Step } from './edit.ts'
import { readYaml } from './parse-yaml.ts'
import { isPlainObject, isSame, type Path, type PlainObject } from './values.ts'

/** Changes single values; comments, order and the form of everything else stay. */
export function editYaml(text: string, steps: readonly Step[]): string {
  const document = readYaml(text)
  for (const { path, value } of steps) {
    if (value === undefined) document.deleteIn(path)
    else setValue(document, path, value)
  }
  const edited = document.toString({
    lineWidth: 0,
    indent: /^( +)\S/m.exec(text)?.[1]?.length ?? 2,
    indentSeq: !/^( *)[^\s#-][^\n]*:[ \t]*\n\1- /m.test(text),
    flowCollectionPadding: !/\{[^\s}]/.test(text),
  })
  return text.includes('\r\n') ? edited.replaceAll('\n', '\r\n') : edited
}

function setValue(document: Document, path: Path, value: unknown): void {
  openEmptyMaps(document, path)
  if (typeof value !== 'object' || value === null) {
    const before: unknown = document.getIn(path, true)
    // The form of the old text is kept, but a block of lines cannot hold every short text.
    if (isScalar(before) && before.type?.startsWith('BLOCK')) before.type = 'QUOTE_DOUBLE'
    document.setIn(path, value)
    return
  }
  if (isListOfMaps(value)) {
    const before: unknown = document.getIn(path, true)
    const list = isSeq(before) ? before : document.createNode([])
    document.setIn(path, replaceEntries(document, list, value))
    return
  }
  const node = document.createNode(value)
  visit(node, {
    Seq(_, list) {
      list.flow = true
    },
  })
  document.setIn(path, node)
}

function isListOfMaps(value: unknown): value is readonly PlainObject[] {
  return Array.isArray(value) && value.length > 0 && value.every(isPlainObject)
}

/** Entries that stay keep their form and their comments; new ones stand on a line each. */
function replaceEntries(document: Document, list: YAMLSeq, wanted: readonly PlainObject[]): YAMLSeq {
  const before = list.items.map((node) => ({ node, value: isNode(node) ? node.toJS(document) : undefined }))
  const [first] = list.items
  list.flow = false
  list.items = wanted.map((value) => {
    const kept = before.findIndex((entry) => isSame(entry.value, value))
    if (kept !== -1) return before.splice(kept, 1)[0]?.node
    const node = document.createNode(value)
    if (isCollection(node)) node.flow = true
    return node
  })
  // What stands above the first entry is taken for a comment on the list; it goes where that entry goes.
  if (isNode(first) && list.items.includes(first) && list.commentBefore) {
    first.commentBefore = list.commentBefore
    list.commentBefore = undefined
  }
  return list
}

/** `servers: {}` is how an empty map is written; what is put into it reads better on lines of its own. */
function openEmptyMaps(document: Document, path: Path): void {
  for (let length = 0; length < path.length; length++) {
    const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
    if (isMap(node) && node.items.length === 0) node.flow = false
  }
}
