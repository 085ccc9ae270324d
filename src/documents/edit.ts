import { editJson } from './edit-json.ts'
import { editToml } from './edit-toml.ts'
import { editYaml } from './edit-yaml.ts'
import { DocumentError } from './error.ts'
import { type DocumentFormat, parseText } from './parse.ts'
import { isPlainObject, isSame, type Path, type Step, withValueAt } from './values.ts'

export type DocumentEdit = {
  readonly steps: readonly Step[]
  /** The path that all steps share. TOML writes it as a table. */
  readonly base: Path
  /** The value of the document before the edit. */
  readonly value: unknown
}

/**
 * Writes or removes values in a text. Comments and the layout of everything else are kept. Throws a `DocumentError` if
 * the edited text does not have the wanted value.
 */
export function editDocument(text: string, format: DocumentFormat, edit: DocumentEdit): string {
  const edited = write(text, format, edit)
  const parsing = parseText(format, edited)
  const wanted = edit.steps.reduce((root, step) => withValueAt(root, step.path, step.value), edit.value)
  // Aliases and unusual layouts can change more values than the edited one.
  if (!parsing.ok || !isSame(withoutEmptyMaps(parsing.parsed.value), withoutEmptyMaps(wanted)))
    throw new DocumentError()
  return edited
}

function write(text: string, format: DocumentFormat, edit: DocumentEdit): string {
  try {
    if (format === 'json' || format === 'jsonc') return editJson(text, edit.steps)
    return format === 'toml' ? editToml(text, edit) : editYaml(text, edit.steps)
  } catch (error) {
    throw error instanceof DocumentError ? error : new DocumentError(undefined, { cause: error })
  }
}

/** TOML does not write a table that is empty, so empty maps are ignored in the comparison. */
function withoutEmptyMaps(value: unknown): unknown {
  if (!isPlainObject(value)) return value
  const entries = Object.entries(value).map(([key, entry]): [string, unknown] => [key, withoutEmptyMaps(entry)])
  return Object.fromEntries(entries.filter(([, entry]) => !isPlainObject(entry) || Object.keys(entry).length > 0))
}
