import { Timeouts, ToolChoice } from '../contract/server.ts'
import { isPlainObject, isSame, type PlainObject, valueAt } from '../documents/values.ts'
import type { NamedServer, Note } from './format.ts'
import { type Notation, splitCanonical, type Variable } from './notation.ts'

/**
 * A server that is written in the format of a program. Each setting is taken once; `finish` notes the settings that
 * nobody took.
 */
export type Draft = ReturnType<typeof createDraft>

export function createDraft({ name, definition }: NamedServer, notation: Notation, title: string) {
  const stated = statedFields(definition)
  const notes: Note[] = []
  const note = (field: string, message: string): void => void notes.push({ field, message })
  const take = (field: string): unknown => {
    const value = stated.get(field)
    stated.delete(field)
    return value
  }
  const writeVariable = (field: string, variable: Variable): string => {
    const written = notation.write(variable)
    if (!notation.replaces) {
      note(field, `${title} does not replace variables: write the value of ${variable.name} instead of ${written}`)
    }
    if (written !== undefined) return written
    note(field, `${title} has no fallback for variables: set ${variable.name} where it runs`)
    return notation.write({ name: variable.name }) ?? ''
  }
  const fill = (field: string, text: string): string =>
    splitCanonical(text)
      .map((piece) => {
        if (typeof piece !== 'string') return writeVariable(field, piece)
        if (piece.search(notation.pattern) !== -1) note(field, `${title} reads a part of this text as a variable`)
        return piece
      })
      .join('')
  const fillRecord = (field: string, texts: unknown): Record<string, string> =>
    Object.fromEntries(toTexts(texts).map(([key, text]) => [key, fill(`${field}.${key}`, text)]))
  const draft = {
    name,
    title,
    transport: definition.transport,
    note,
    take,
    fill,
    text(field: string): string | undefined {
      const value = take(field)
      return typeof value === 'string' ? value : undefined
    },
    texts(field: string): string[] {
      const value = take(field)
      return Array.isArray(value) ? value.map(String) : []
    },
    /** The texts of a map as they are, in Sallyport's notation. */
    pairs: (field: string): [string, string][] => toTexts(take(field)),
    /** The settings of a command: `command`, `args`, `env`. */
    local(): { command: string; args: string[]; env?: Record<string, string> } {
      const command = fill('command', String(take('command') ?? ''))
      const args = draft.texts('args').map((text, index) => fill(`args.${index}`, text))
      const env = fillRecord('env', take('env'))
      return { command, args, ...(Object.keys(env).length === 0 ? {} : { env }) }
    },
    /** The settings of an address: `url`, `headers`. */
    remote(urlField = 'url'): PlainObject {
      const headers = fillRecord('headers', take('headers'))
      const url = fill('url', String(take('url') ?? ''))
      return { [urlField]: url, ...(Object.keys(headers).length === 0 ? {} : { headers }) }
    },
    /** Tool names, if the program knows only names and the setting has only names. */
    toolNames(field: 'tools.include' | 'tools.exclude', least = 0): string[] | undefined {
      const names = stated.get(field)
      if (!Array.isArray(names) || names.length < least || names.some((tool) => /[*?]/.test(String(tool))))
        return undefined
      stated.delete(field)
      return names.map(String)
    },
    time(field: 'timeout.connect' | 'timeout.call'): number | undefined {
      const value = take(field)
      return typeof value === 'number' ? value : undefined
    },
    finish(): Note[] {
      for (const field of stated.keys()) note(field, explain(field, title))
      return notes
    },
  }
  return draft
}

function toTexts(value: unknown): [string, string][] {
  if (!isPlainObject(value)) return []
  return Object.entries(value).map(([key, text]) => [key, String(text)])
}

const defaults: PlainObject = {
  trust: 'annotations',
  tools: ToolChoice.parse({}),
  timeout: Timeouts.parse({}),
  enabled: true,
  args: [],
  env: {},
  headers: {},
  secretsInArguments: false,
}
const groups: readonly string[] = ['tools', 'timeout']

/** The settings that differ from the defaults, by dotted key. */
function statedFields(definition: NamedServer['definition']): Map<string, unknown> {
  const flat = Object.entries(definition).flatMap(([field, value]): [string, unknown][] => {
    if (!groups.includes(field) || !isPlainObject(value)) return [[field, value]]
    return Object.entries(value).map(([key, setting]) => [`${field}.${key}`, setting])
  })
  const differs = ([field, value]: [string, unknown]): boolean => {
    return value !== undefined && field !== 'transport' && !isSame(value, valueAt(defaults, field.split('.')) ?? null)
  }
  return new Map(flat.filter(differs))
}

const ownSettings: readonly string[] = [
  'defaultRisk',
  'trust',
  'pinning',
  'limits',
  'tools.override',
  'secretsInArguments',
]

function explain(field: string, title: string): string {
  if (ownSettings.includes(field)) return 'applies only in Sallyport and is left out'
  if (field.startsWith('tools.')) return `${title} cannot express it here: all tools are offered there`
  return `${title} has no such setting; it is left out`
}
