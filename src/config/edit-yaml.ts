import { type Document, isMap, isScalar, visit } from 'yaml'
import type { Step } from './edit.ts'
import { readYaml } from './parse-yaml.ts'
import type { Path } from './values.ts'

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
  const node = document.createNode(value)
  visit(node, {
    Seq(_, list) {
      list.flow = true
    },
  })
  document.setIn(path, node)
}

/** `servers: {}` is how an empty map is written; what is put into it reads better on lines of its own. */
function openEmptyMaps(document: Document, path: Path): void {
  for (let length = 0; length < path.length; length++) {
    const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
    if (isMap(node) && node.items.length === 0) node.flow = false
  }
}
