import { createHash } from 'node:crypto'
import { type ConfigStore, type FilePlace, findServerFault, mayChangeServer } from '../config/config.ts'
import type { ScopedServer } from '../contract/config.ts'
import type { Principal } from '../contract/principal.ts'
import { toScope } from '../contract/scope.ts'
import { isSame, own } from '../documents/values.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { findLiterals, toPlaceKey } from '../masking/masking.ts'
import type { AcceptedFile } from '../storage/tables/accepted-files.ts'
import type { FoundServer } from './read.ts'

/** An entry of the file with the reason why it is not accepted; undefined if it is. */
export type JudgedServer = FoundServer & { readonly because: string | undefined }

export type Judged = {
  readonly servers: readonly JudgedServer[]
  /** The entries that would be in effect. */
  readonly accepted: Readonly<Record<string, ScopedServer>>
  /** Names everything that was judged: the bytes, and each entry with its definition or its reason. */
  readonly hash: string
}

type JudgeParts = {
  readonly config: Pick<ConfigStore, 'current' | 'inheritedIn'>
  readonly by: Principal
  readonly place: FilePlace
  /** SHA-256 of the bytes. */
  readonly digest: string
  readonly found: readonly FoundServer[]
  readonly before: AcceptedFile | undefined
}

/**
 * Which entries of the file this principal may put into effect. Owners of the project may accept the entries that they
 * may add themselves. An entry that is in effect already stays, whoever accepts the rest of the file.
 */
export function judgeContent({ config, by, place, digest, found, before }: JudgeParts): Judged {
  const current = config.current()
  const scope = toScope(place.scope)
  const stated = scope.kind === 'project' ? (own(current.projects, scope.name)?.servers ?? {}) : {}
  const inherited = config.inheritedIn(scope).servers
  let entries = Object.keys(stated).length
  const servers = found.map((server): JudgedServer => {
    const because = findReason(server)
    if (because === undefined) entries++
    return { ...server, because }
  })
  const taken = servers.filter(({ because }) => because === undefined)
  const accepted = Object.fromEntries(taken.map(({ key, definition }) => [key, definition]))
  const shown = servers.map(({ key, definition, because }) => ({ key, definition, because: because ?? null }))
  const hash = createHash('sha256').update(toCanonicalText({ place, digest, shown })).digest('hex')
  return { servers, accepted, hash }

  function findReason({ key, definition }: FoundServer): string | undefined {
    const fault = findServerFault(key, definition) ?? findLiteralFault(key, definition)
    if (fault !== undefined) return fault
    if (Object.hasOwn(stated, key)) return 'The configuration has an entry of this name for the project, which is used'
    // Rules match names: an entry that takes over a name would get everything that the rules allow for that name.
    if (inherited.has(key)) return 'Another server already has this name: choose a different name'
    if (before && Object.hasOwn(before.servers, key) && isSame(before.servers[key], definition)) return undefined
    const judgement = mayChangeServer(by, { action: 'add', scope, wanted: definition, entries }, current)
    return judgement.may ? undefined : judgement.because
  }
}

/** An accepted entry is stored and shown, and everybody who reads the repository knows the value. */
function findLiteralFault(key: string, definition: ScopedServer): string | undefined {
  const [literal] = findLiterals(key, definition)
  if (literal === undefined) return undefined
  const { name, place } = literal
  return `${toPlaceKey(place)} contains a secret: write \${${name}} in the file and store the value as a secret of the project`
}
