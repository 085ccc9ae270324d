import { z } from 'zod'
import { own, type PlainObject } from '../documents/values.ts'
import type { Need, Note } from './format.ts'
import { joinCanonical, type Notation, type Piece } from './notation.ts'

/**
 * The fields of one server in a file. Each field is read once; `finish` notes the fields that nobody read. Notes never
 * contain values, because a value may be a secret.
 */
export type Entry = ReturnType<typeof createEntry>

const Texts = z.array(z.string())
/** YAML and TOML users write `PORT: 3000`. */
const TextRecord = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean()]).transform((value) => String(value)),
)

export function createEntry(key: string, fields: PlainObject, notation: Notation) {
  const seen = new Set<string>()
  const notes = new Map<string, Note>()
  const needs = new Map<string, Need>()
  const note = (field: string, message: string): void => {
    notes.set(JSON.stringify([field, message]), { field, message })
  }
  const need = (wanted: Need): void => {
    if (!needs.has(wanted.name)) needs.set(wanted.name, wanted)
  }
  const take = <Value>(field: string, schema: z.ZodType<Value>, expected: string): Value | undefined => {
    seen.add(field)
    const value = own(fields, field)
    if (value === undefined || value === null) return undefined
    const parsed = schema.safeParse(value)
    if (parsed.success) return parsed.data
    note(field, `is not ${expected} and is left out`)
    return undefined
  }
  /** The text with the variables of the program written as `${NAME}`. */
  const convert = (field: string, text: string): string => {
    const pieces: Piece[] = []
    let end = 0
    for (const match of text.matchAll(notation.pattern)) {
      const reference = notation.read(match)
      pieces.push(text.slice(end, match.index), reference.piece)
      end = match.index + match[0].length
      if (reference.note !== undefined) note(field, reference.note)
      if (reference.need && typeof reference.piece !== 'string') need({ ...reference.need, name: reference.piece.name })
    }
    pieces.push(text.slice(end))
    const texts = pieces.map((piece, index) =>
      typeof piece === 'string' ? piece + (pieces[index + 1] ? '\0' : '') : '',
    )
    if (texts.some((piece) => piece.includes('${'))) note(field, 'contains a ${ that is not a variable; it stays text')
    if (texts.some((piece) => piece.endsWith('$\0')))
      note(field, 'has a $ directly before a variable, which makes it text here')
    return joinCanonical(pieces)
  }
  const record = (field: string) => take(field, TextRecord, 'a map of names to texts')
  return {
    key,
    note,
    need,
    convert,
    has: (field: string): boolean => own(fields, field) !== undefined && own(fields, field) !== null,
    /** The text as it is. */
    text: (field: string) => take(field, z.string(), 'a text'),
    flag: (field: string) => take(field, z.boolean(), 'true or false'),
    number: (field: string) => take(field, z.number().nonnegative(), 'a number'),
    texts: (field: string) => take(field, Texts, 'a list of texts'),
    record,
    raw(field: string): unknown {
      seen.add(field)
      return own(fields, field)
    },
    template(field: string): string | undefined {
      const text = take(field, z.string(), 'a text')
      return text === undefined ? undefined : convert(field, text)
    },
    templates(field: string): string[] | undefined {
      return take(field, Texts, 'a list of texts')?.map((text, index) => convert(`${field}.${index}`, text))
    },
    templateRecord(field: string): Record<string, string> | undefined {
      const texts = record(field)
      if (texts === undefined) return undefined
      return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, convert(`${field}.${name}`, text)]))
    },
    /** Leaves these fields out, with a note for each one that is set. */
    leave(names: readonly string[], message: string): void {
      for (const name of names) {
        seen.add(name)
        if (own(fields, name) !== undefined && own(fields, name) !== null) note(name, message)
      }
    },
    /** Ignores these fields, because they change nothing for Sallyport. */
    ignore(...names: readonly string[]): void {
      for (const name of names) seen.add(name)
    },
    finish(): { notes: Note[]; needs: Need[] } {
      for (const name of Object.keys(fields)) if (!seen.has(name)) note(name, 'is not known and is left out')
      return { notes: [...notes.values()], needs: [...needs.values()] }
    },
  }
}
