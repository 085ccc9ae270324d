import { listNames } from '../config/config.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { ServerFileEntry } from '../contract/server-file.ts'
import { isSame, own } from '../documents/values.ts'
import { hideLiterals } from '../masking/masking.ts'

export type Definitions = Readonly<Record<string, ServerDefinition>>

/** What an administrator confirms: every server of the new content, and its difference from the confirmed content. */
export function compareServers(before: Definitions, after: Definitions): ServerFileEntry[] {
  const kept = Object.entries(after).map(([name, definition]): ServerFileEntry => {
    const known = own(before, name)
    const entry = { name, definition: toShown(name, definition), variables: [...new Set(listNames(definition))].sort() }
    if (known === undefined) return { ...entry, change: 'added', before: undefined }
    if (isSame(known, definition)) return { ...entry, change: 'same', before: undefined }
    return { ...entry, change: 'changed', before: toShown(name, known) }
  })
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name))
  return [
    ...kept,
    ...removed.map((name): ServerFileEntry => {
      return { name, change: 'removed', definition: undefined, before: undefined, variables: [] }
    }),
  ]
}

/** The fields that a file can set. Defaults of other fields would only hide what matters. */
function toShown(name: string, definition: ServerDefinition): object {
  const { title, description, enabled, ...fields } = hideLiterals(name, definition)
  const { transport } = fields
  const about = { ...(title !== undefined && { title }), ...(description !== undefined && { description }) }
  if (transport !== 'stdio') return { transport, url: fields.url, headers: fields.headers, enabled, ...about }
  const { command, args, env, cwd } = fields
  return { transport, command, args, env, ...(cwd !== undefined && { cwd }), enabled, ...about }
}

/** One line for the log: the names that were added, changed and removed. */
export function describeChanges(entries: readonly ServerFileEntry[]): string {
  const parts = (['added', 'changed', 'removed'] as const).flatMap((change) => {
    const names = entries.filter((entry) => entry.change === change).map(({ name }) => name)
    return names.length === 0 ? [] : [`${change}: ${names.join(', ')}`]
  })
  return parts.length === 0 ? 'the same servers, written differently' : parts.join('; ')
}
