import { applyEdits, modify } from 'jsonc-parser'
import type { Step } from './edit.ts'

/** Changes single values and keeps the indentation of the file. */
export function editJson(text: string, steps: readonly Step[]): string {
  const indent = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  '
  const formattingOptions = {
    insertSpaces: !indent.startsWith('\t'),
    tabSize: indent.startsWith('\t') ? 1 : indent.length,
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  }
  return steps.reduce(
    (edited, { path, value }) => applyEdits(edited, modify(edited, [...path], value, { formattingOptions })),
    text,
  )
}
