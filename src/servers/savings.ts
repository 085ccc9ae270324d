import type { ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import { type Scope, toScopeKey } from '../contract/scope.ts'
import type { SavedServer } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import { findLiterals, toPlaceKey } from '../masking/masking.ts'
import type { MovedEntries, MoveLiterals } from '../secrets/secrets.ts'
import { restoreHidden } from './hidden.ts'

/** The secrets that a saved definition was freed from, and its problems. Without fields if there is nothing to tell. */
export type LiteralNotes = Pick<SavedServer, 'secrets' | 'warnings'>

type Sent = {
  readonly name: string
  readonly definition: ScopedServer
  readonly scope: Scope
  /** The entry that the definition replaces. */
  readonly current: ScopedServer | undefined
  readonly keepLiteral?: boolean | undefined
}

type SessionServers = Readonly<Record<string, ScopedServer>>

export type Savings = {
  /** Calls `save` with the definition without literal secrets, after these were stored. */
  save(by: Principal, sent: Sent, save: (definition: ScopedServer) => Promise<LiteralNotes>): Promise<LiteralNotes>
  /** Stores the secrets that are written in the servers of a session, which replace the servers `before`. */
  storeSession(
    by: Principal,
    session: string,
    servers: SessionServers,
    before: SessionServers,
  ): Promise<MovedEntries<ScopedServer>>
}

/** What happens to the secrets that are written in a definition when it is saved. The caller checks the rights. */
export function createSavings(moveLiterals: MoveLiterals): Savings {
  return {
    async save(by, { scope, keepLiteral, ...sent }, save) {
      const { definition, kept } = restoreHidden(sent)
      if (keepLiteral) return keepLiterals(by, { name: sent.name, definition, scope }, save)
      // A session moves the literals of all its servers when it is stored.
      if (scope.kind === 'session') return save(definition)
      const servers = { [sent.name]: definition }
      const moved = await moveLiterals(by, { scope: toScopeKey(scope), servers, kept })
      try {
        await save(moved.servers[sent.name] ?? definition)
      } catch (error) {
        await moved.undo()
        throw error
      }
      return toNotes(moved)
    },
    storeSession(by, session, sent, before) {
      const restored = Object.entries(sent).map(([name, definition]): [string, ScopedServer] => [
        name,
        restoreHidden({ name, definition, current: own(before, name) }).definition,
      ])
      return moveLiterals(by, { scope: `session:${session}`, servers: Object.fromEntries(restored) })
    },
  }
}

async function keepLiterals(
  { kind, role }: Principal,
  { name, definition, scope }: Pick<Sent, 'name' | 'definition' | 'scope'>,
  save: (definition: ScopedServer) => Promise<LiteralNotes>,
): Promise<LiteralNotes> {
  if (kind !== 'user' || role !== 'administrator') {
    throw new GatewayError('forbidden', 'Only administrators can keep secrets in the configuration: remove keepLiteral')
  }
  if (scope.kind === 'session') {
    throw new GatewayError('request-invalid', 'Secrets of a session are always stored encrypted: remove keepLiteral')
  }
  await save(definition)
  const found = findLiterals(name, definition).map(({ place }) => toPlaceKey(place))
  const warnings = found.map((key) => `${name}: ${key} is a secret in plain text in the configuration`)
  return warnings.length === 0 ? {} : { warnings }
}

function toNotes({ secrets, warnings }: MovedEntries<ScopedServer>): LiteralNotes {
  return {
    ...(secrets.length > 0 && { secrets: [...secrets] }),
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  }
}
