import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { JsonError, parseJson } from '../lib/json.ts'
import type { Fault, Parsing } from './parse.ts'
import { positionAt } from './position.ts'
import { type Path, toKey } from './values.ts'

/** Plain JSON: no comments, no trailing commas, no duplicate keys. */
export function parseJsonFile(text: string): Parsing {
  try {
    const value = parseJson(text)
    const root = parseTree(text)
    const faults = root === undefined ? [] : findDuplicates(text, root, [])
    if (faults.length > 0) return { ok: false, faults }
    return { ok: true, parsed: { value, locate: (path) => positionAt(text, findOffset(root, path)) } }
  } catch (error) {
    return { ok: false, faults: [toFault(text, error)] }
  }
}

function toFault(text: string, error: unknown): Fault {
  const deep = error instanceof JsonError && error.fault === 'too-deep'
  // `parseTree` reports the position of the error. It recurses, so it must not get a text that is nested too deeply.
  const first = deep ? undefined : findFirstError(text)
  const code = first === undefined ? undefined : printParseErrorCode(first.error)
  return {
    position: positionAt(text, first?.offset ?? 0),
    key: '',
    message: deep ? 'is nested too deeply' : toWords(code),
  }
}

function findFirstError(text: string): ParseError | undefined {
  const errors: ParseError[] = []
  try {
    parseTree(text, errors, { disallowComments: true, allowTrailingComma: false })
  } catch {
    return undefined
  }
  return errors[0]
}

function toWords(code: string | undefined): string {
  if (code === 'InvalidCommentToken') return 'comments are not allowed in JSON; use YAML or TOML for comments'
  if (code === undefined) return 'is not JSON'
  return `is not JSON: ${code.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim()}`
}

export function findDuplicates(text: string, node: Node, path: Path): Fault[] {
  const children = node.children ?? []
  if (node.type === 'array') return children.flatMap((child, index) => findDuplicates(text, child, [...path, index]))
  const seen = new Set<string>()
  return children.flatMap((property) => {
    const [key, value] = property.children ?? []
    if (key === undefined || value === undefined) return []
    const name = String(key.value)
    const here = [...path, name]
    const twice = seen.has(name)
    seen.add(name)
    const inside = findDuplicates(text, value, here)
    if (!twice) return inside
    const position = positionAt(text, key.offset)
    return [{ position, key: toKey(here), message: 'is a duplicate key in the same object' }, ...inside]
  })
}

export function findOffset(root: Node | undefined, path: Path): number {
  let node = root
  let offset = root?.offset ?? 0
  for (const segment of path) {
    if (node?.type === 'array') {
      node = node.children?.[Number(segment)]
      if (node === undefined) break
      offset = node.offset
      continue
    }
    const property = node?.children?.find((child) => child.children?.[0]?.value === String(segment))
    if (property === undefined) break
    offset = property.offset
    node = property.children?.[1]
  }
  return offset
}
