import { isPlainObject, type PlainObject } from '../documents/values.ts'
import type { Reported } from './format.ts'
import { type PlatformServer, readPlatformEntry } from './platform-entry.ts'

export type PlatformReading = { readonly servers: readonly PlatformServer[]; readonly reported: readonly Reported[] }

export const nothing: PlatformReading = { servers: [], reported: [] }

const nameWords = ['name', 'alias', 'id', 'key', 'slug'] as const
export type NameWord = (typeof nameWords)[number]

/** An entry of a list or a map of servers, with its name. */
export type Named = { readonly key: string; readonly fields: PlainObject; readonly note?: string | undefined }

/** The entries of a list, or of a map by name. Entries that cannot be read are reported. */
export function listEntries(
  value: unknown,
  home: string,
  usual: NameWord = 'name',
): { named: Named[]; reported: Reported[] } {
  const named: Named[] = []
  const reported: Reported[] = []
  if (value === undefined || value === null) return { named, reported }
  if (!Array.isArray(value) && !isPlainObject(value)) {
    return { named, reported: [{ key: home, message: 'is neither a list nor a map of servers' }] }
  }
  const entries: [string, unknown][] = Object.entries(value)
  for (const [place, fields] of entries) {
    const key = Array.isArray(value) ? `${home}.${place}` : place
    if (!isPlainObject(fields)) reported.push({ key, message: 'is not a server' })
    else if (!Array.isArray(value)) named.push({ key, fields })
    else {
      const found = takeName(fields, usual)
      if (found === undefined) reported.push({ key, message: `has no ${usual}` })
      else named.push(found)
    }
  }
  return { named, reported }
}

/** The name of an entry in a list, and its other fields. */
export function takeName(fields: PlainObject, usual: NameWord): Named | undefined {
  const words = [usual, ...nameWords.filter((word) => word !== usual)]
  const word = words.find((candidate) => typeof fields[candidate] === 'string' && fields[candidate] !== '')
  if (word === undefined) return undefined
  const rest = Object.entries(fields).filter(([name]) => name !== word)
  const note = word === usual ? undefined : `${word} was read as its name`
  return { key: String(fields[word]), fields: Object.fromEntries(rest), note }
}

/** Reads entries with the fields of all platforms. */
export function readEntries(
  { named, reported }: { named: readonly Named[]; reported: readonly Reported[] },
  usual: readonly string[],
): PlatformReading {
  const servers: PlatformServer[] = []
  const all = [...reported]
  for (const { key, fields, note } of named) {
    const found = readPlatformEntry(key, fields, usual)
    if ('refused' in found) all.push({ key, message: found.refused })
    else servers.push(note === undefined ? found : withNote(found, { field: 'name', message: note }))
  }
  return { servers, reported: all }
}

export function withNote(server: PlatformServer, note: PlatformServer['notes'][number]): PlatformServer {
  return { ...server, notes: [...server.notes, note] }
}
