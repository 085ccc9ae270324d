import { editDocument } from '../documents/edit.ts'
import { DocumentError } from '../documents/error.ts'
import { type Format, parseText } from '../documents/parse.ts'
import { renameKey, withKeyAt } from '../documents/rename.ts'
import { type Path, type Step, valueAt, withValueAt } from '../documents/values.ts'
import { type Respelling, respell } from './spellings.ts'

/** The path of a scope, and the names of servers in it. */
export type SpelledPlace = { readonly scope: Path; readonly names: readonly string[] }

type Written = { readonly text: string; readonly value: unknown }

/**
 * The text with some servers in our own spelling, and its value, before an edit changes these servers. Other entries keep
 * their spelling. Comments are kept: keys are renamed in place.
 */
export function toOwnSpelling({ text, format }: { text: string; format: Format }, place?: SpelledPlace): Written {
  const parsing = parseText(format, text)
  if (!parsing.ok) throw new DocumentError()
  const { value } = parsing.parsed
  const steps = place ? respell(value).listSteps(place.scope, place.names) : []
  return steps.reduce((written, step) => applyStep(written, step, format), { text, value })
}

function applyStep({ text, value }: Written, step: Respelling, format: Format): Written {
  const { path } = step
  if (step.kind === 'write') return write({ text, value }, [{ path, value: step.value }], format)
  const rename = { path, name: step.name, value }
  try {
    return { text: renameKey(text, format, rename), value: withKeyAt(value, rename) }
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    // A key in an inline table of TOML is not a line: it is removed and written under its new name.
    const renamed = [...path.slice(0, -1), step.name]
    return write(
      { text, value },
      [
        { path, value: undefined },
        { path: renamed, value: valueAt(value, path) },
      ],
      format,
    )
  }
}

function write({ text, value }: Written, steps: readonly Step[], format: Format): Written {
  const base = steps[0]?.path.slice(0, -1) ?? []
  return {
    text: editDocument(text, format, { steps, base, value }),
    value: steps.reduce((root, step) => withValueAt(root, step.path, step.value), value),
  }
}
