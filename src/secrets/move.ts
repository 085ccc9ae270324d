import type { ConfigStore } from '../config/config.ts'
import type { ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import { type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import { hiddenMark } from '../lib/secret.ts'
import {
  findLiterals,
  findPlaceholders,
  type Literal,
  replaceLiterals,
  rewrite,
  toPlaceKey,
} from '../masking/masking.ts'
import type { StoredSecret } from '../storage/tables/secrets.ts'
import type { FoundValue, KeptSecret } from './keep.ts'

type Entry = ScopedServer

/** Definitions of one scope by the names of their servers. */
export type WantedEntries<Definition extends Entry> = {
  readonly scope: ScopeKey
  readonly servers: Readonly<Record<string, Definition>>
  /** The dotted keys of texts that stay as they are, because they are stored already. */
  readonly kept?: ReadonlySet<string> | undefined
}

export type MovedEntries<Definition extends Entry> = {
  /** The definitions with `${NAME}` in the place of each literal secret. */
  readonly servers: Readonly<Record<string, Definition>>
  /** The names of the secrets that the literals were moved to. */
  readonly secrets: readonly string[]
  readonly warnings: readonly string[]
  /** Removes the new secrets, if the definitions were not saved. */
  undo(): Promise<void>
}

/** Moves the literal secrets of definitions into the secret store. The caller has checked the rights of `by`. */
export type MoveLiterals = <Definition extends Entry>(
  by: Principal,
  wanted: WantedEntries<Definition>,
) => Promise<MovedEntries<Definition>>

type MoveParts = {
  readonly config: Pick<ConfigStore, 'current' | 'statedIn' | 'scopes' | 'trusts' | 'ownerOf'>
  readonly secrets: {
    keep(by: Principal, found: FoundValue): Promise<KeptSecret>
    dropKept(by: Principal, made: readonly StoredSecret[]): Promise<void>
  }
}

/** Each value is masked from then on, and the number of masked values is limited. */
const mostLiterals = { trusted: 100, other: 10 }

export function createLiteralMover({ config, secrets }: MoveParts): MoveLiterals {
  return async (by, { scope, servers, kept: stays = new Set() }) => {
    const found = Object.entries(servers).map(([name, definition]) => ({
      name,
      definition,
      literals: findLiterals(name, definition).filter(({ place }) => !stays.has(toPlaceKey(place))),
    }))
    for (const { name, definition } of found) refuseHidden(name, definition, stays)
    const most = config.trusts(scope) ? mostLiterals.trusted : mostLiterals.other
    const count = found.reduce((sum, { literals }) => sum + literals.length, 0)
    if (count > most) {
      const message = `A change in ${scope} may contain at most ${most} secrets, and this one has ${count}`
      throw new GatewayError('request-invalid', `${message}: store them first, and write \${NAME}`)
    }
    const remaining = found.map(({ definition, literals }) => replaceLiterals(definition, literals, () => ''))
    const referred = listReferred(config, scope, { names: new Set(Object.keys(servers)), remaining })
    const made: StoredSecret[] = []
    const names = new Set<string>()
    /** A change can fail after it was saved. A secret that the configuration uses by then is the only copy of its value. */
    const undo = () => {
      const used = listReferred(config, scope, { names: new Set(), remaining: [] })
      return secrets.dropKept(
        by,
        made.filter(({ name }) => !used.has(name)),
      )
    }

    async function keep(server: string, host: string | undefined, { name, secret: value }: Literal): Promise<string> {
      const isReferred = (candidate: string) => referred.has(candidate)
      const kept = await secrets.keep(by, { scope, name, value, server, host, isReferred })
      if (kept.made) made.push(kept.made)
      names.add(kept.name)
      return kept.name
    }

    const moved: Record<string, (typeof servers)[string]> = {}
    try {
      for (const { name, definition, literals } of found) {
        const host = findHost(definition.url)
        const texts = new Map<Literal, string>()
        for (const literal of literals) texts.set(literal, `\${${await keep(name, host, literal)}}`)
        moved[name] = replaceLiterals(definition, literals, (literal) => texts.get(literal) ?? '')
      }
    } catch (error) {
      await undo()
      throw error
    }
    return { servers: moved, secrets: [...names], warnings: found.flatMap(listWarnings), undo }
  }
}

/** `[secret]` stands for a value that answers do not show. Saved as a text, it would replace the value. */
function refuseHidden(name: string, definition: Entry, stays: ReadonlySet<string>): void {
  rewrite(definition, (place, text) => {
    const key = toPlaceKey(place)
    if (!text.includes(hiddenMark) || stays.has(key)) return text
    const message = `${key} of ${name} contains ${hiddenMark}, which only stands for a value that is not shown`
    throw new GatewayError('request-invalid', `${message}: write the value or \${NAME}`, { name, key })
  })
}

function listWarnings({ name, definition, literals }: { name: string; definition: Entry; literals: Literal[] }) {
  const inArguments = literals.filter(({ place }) => place.field === 'args' || place.field === 'command')
  const placeholders = findPlaceholders(name, definition).filter(({ secret }) => secret !== '')
  const open = 'is a secret in the arguments, where every user of the machine can read it; use env if the program can'
  return [
    ...inArguments.map(({ place }) => `${name}: ${toPlaceKey(place)} ${open}`),
    ...placeholders.map(({ place }) => `${name}: ${toPlaceKey(place)} has a placeholder: fill in the value`),
  ]
}

/**
 * The host to which the secret is bound. Only a literal host that the entry itself has: the host of an inherited server
 * is not shown to everybody who may write an entry for it.
 */
function findHost(url: string | undefined): string | undefined {
  if (url === undefined || !/^https?:\/\/[^\s/\\?#$]+(?:[/?#]|$)/i.test(url)) return undefined
  const filled = url.replace(/\$\{[^}]*\}/g, '1')
  if (!URL.canParse(filled)) return undefined
  const { hostname, port, protocol } = new URL(filled)
  if (port !== '') return `${hostname}:${port}`
  return protocol === 'https:' ? hostname : `${hostname}:80`
}

type Replaced = { readonly names: ReadonlySet<string>; readonly remaining: readonly Entry[] }

/**
 * The names that texts refer to which may use secrets of this scope. A new secret of such a name would change the value
 * of these texts. Entries that the change replaces do not count.
 */
function listReferred(config: MoveParts['config'], scope: ScopeKey, { names, remaining }: Replaced): Set<string> {
  const readers = config.scopes().filter((reader) => reads(config, toScopeKey(reader), scope))
  const texts = [toScope(scope), ...readers].flatMap((reader) => {
    const entries = Object.entries(config.statedIn(reader).servers)
    return entries.filter(([name]) => toScopeKey(reader) !== scope || !names.has(name)).map(([, entry]) => entry)
  })
  const hooks = scope === 'global' ? Object.values(config.current().webhooks) : []
  const found = JSON.stringify([...texts, ...hooks, ...remaining]).matchAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)/g)
  const listed = config.trusts(scope) ? config.current().environment : []
  return new Set([...listed, ...[...found].map(([, name = '']) => name)])
}

/** Whether texts of one scope may use the secrets of another. */
function reads(config: MoveParts['config'], reader: ScopeKey, scope: ScopeKey): boolean {
  if (reader === scope) return false
  if (scope === 'global') return config.trusts(reader)
  const { kind, name } = { name: '', ...toScope(reader) }
  return kind === 'session' && scope === `user:${config.ownerOf({ kind, name })}`
}
