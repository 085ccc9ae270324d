import { createScanner, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { maxDepth } from '../lib/json.ts'
import type { Parsing } from './parse.ts'
import { findDuplicates, findOffset } from './parse-json.ts'
import { positionAt } from './position.ts'

/** JSON with comments and trailing commas, as editors write it. Duplicate keys are an error. */
export function parseJsoncFile(text: string): Parsing {
  // `parseTree` recurses, so it must not get a text that is nested too deeply.
  if (depthOf(text) > maxDepth) return toFault(text, 0, 'is nested too deeply')
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { disallowComments: false, allowTrailingComma: true })
  const [first] = errors
  if (first !== undefined || root === undefined) return toFault(text, first?.offset ?? 0, toWords(first))
  const faults = findDuplicates(text, root, [])
  if (faults.length > 0) return { ok: false, faults }
  return { ok: true, parsed: { value: toValue(root), locate: (path) => positionAt(text, findOffset(root, path)) } }
}

function toFault(text: string, offset: number, message: string): Parsing {
  return { ok: false, faults: [{ position: positionAt(text, offset), key: '', message }] }
}

function toWords(error: ParseError | undefined): string {
  if (error === undefined) return 'is empty'
  const words = printParseErrorCode(error.error).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return `is not JSON: ${words.trim()}`
}

function depthOf(text: string): number {
  const scanner = createScanner(text, true)
  let depth = 0
  let deepest = 0
  for (scanner.scan(); scanner.getTokenOffset() < text.length; scanner.scan()) {
    const first = text[scanner.getTokenOffset()]
    if (first === '{' || first === '[') deepest = Math.max(deepest, ++depth)
    if (first === '}' || first === ']') depth--
  }
  return deepest
}

function toValue({ type, value, children = [] }: Node): unknown {
  if (type === 'array') return children.map(toValue)
  if (type !== 'object') return value
  return Object.fromEntries(
    children.map(({ children: [key, field] = [] }) => [String(key?.value), field && toValue(field)]),
  )
}
