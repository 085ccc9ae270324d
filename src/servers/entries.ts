import type { ConfigStore, Seal } from '../config/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import { type ScopeKey, toScopeId, toScopeKey } from '../contract/scope.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createRounds } from '../lib/rounds.ts'
import { goneScopesOf, idsOf, type Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredServerEntry } from '../storage/tables/server-entries.ts'

/** The times of a server entry as answers show them. */
export type EntryTimes = { readonly createdAt?: string; readonly updatedAt?: string }

/** When each server entry of the configuration was first seen and last changed, also by an edit of the file. */
export type ServerEntries = {
  timesOf(scope: ScopeKey, name: string): EntryTimes
  /** Compares the configuration with the stored entries and stores the differences. */
  sync(): Promise<void>
}

export type ServerEntriesParts = {
  readonly storage: Pick<Storage, 'serverEntries'>
  readonly config: Pick<ConfigStore, 'scopes' | 'statedIn'>
  readonly seal: Seal
  findUserId(name: string): string | undefined
  readonly clock: Clock
  readonly log: Log
}

export function createServerEntries(parts: ServerEntriesParts): ServerEntries {
  const { storage, config, seal, clock, log } = parts
  let known = new Map<string, StoredServerEntry>()
  const sync = createRounds(async () => {
    await compare().catch((error: unknown) => {
      log.warn({ code: toGatewayError(error).code }, 'the times of server entries could not be stored')
    })
  })
  return { timesOf, sync }

  function timesOf(scope: ScopeKey, name: string): EntryTimes {
    const entry = known.get(toKey({ scope: toScopeId(scope, parts.findUserId), name }))
    return entry ? { createdAt: toIso(entry.createdAt), updatedAt: toIso(entry.updatedAt) } : {}
  }

  /** Reads again after writing: if several instances saw the same change, the times of the first one count. */
  async function compare(): Promise<void> {
    known = await read()
    const stated = listStated()
    const changed = [...stated.values()].flatMap(({ scope, name, text }): StoredServerEntry[] => {
      const before = known.get(toKey({ scope, name }))
      if (before && seal.fits(text, before.mark)) return []
      const now = clock.now()
      return [{ scope, name, mark: seal.make(text), createdAt: before?.createdAt ?? now, updatedAt: now }]
    })
    const removed = [...known].filter(([key]) => !stated.has(key)).map(([, entry]) => entry)
    if (changed.length + removed.length === 0) return
    await storage.serverEntries.write(changed, removed)
    known = await read()
  }

  async function read(): Promise<Map<string, StoredServerEntry>> {
    return new Map((await storage.serverEntries.all()).map((entry) => [toKey(entry), entry]))
  }

  function listStated() {
    const entries = config.scopes().flatMap((stating) => {
      const scope = toScopeId(toScopeKey(stating), parts.findUserId)
      const { servers } = config.statedIn(stating)
      return Object.entries(servers).map(([name, entry]) => ({ scope, name, text: `server ${toCanonicalText(entry)}` }))
    })
    return new Map(entries.map((entry) => [toKey(entry), entry]))
  }
}

/** Names of servers contain no space. */
function toKey({ scope, name }: { readonly scope: string; readonly name: string }): string {
  return `${name} ${scope}`
}

/** Removes the entries of the removed scopes. */
export function createServerEntriesRemover(storage: Pick<Storage, 'serverEntries'>): Remover {
  return {
    topics: [],
    list: async () => [],
    remove: (subjects) => [
      storage.serverEntries.removeAll([
        ...goneScopesOf(subjects),
        ...idsOf(subjects, 'user').map((id) => `user:${id}`),
      ]),
    ],
  }
}
