import type { ConfigStore } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { SecretValue } from '../lib/secret.ts'
import { type Ownership, usableScopes } from './scopes.ts'

/** A server definition with templates, and the scope that wrote each of its texts. */
export type Templated = {
  readonly name: string
  readonly definition: ServerDefinition
  /** The scope of each text, by dotted key. */
  readonly origins: Readonly<Record<string, ScopeKey>>
}

export type UsableSecret = {
  readonly id: string
  readonly name: string
  readonly value: SecretValue
  readonly hosts: readonly string[]
  readonly servers: readonly string[]
}

export type ResolveParts = Pick<Ownership, 'ownerOf' | 'trusts'> & {
  readonly config: Pick<ConfigStore, 'resolve'>
  find(scope: ScopeKey, name: string): UsableSecret | undefined
  onVariable(name: string, value: string): void
}

/** Fills in the templates, as the last step before connecting. Secrets are revealed only here. Throws `variable-missing`. */
export function resolveTemplates(
  parts: ResolveParts,
  { name: server, definition, origins }: Templated,
): { readonly definition: ServerDefinition; readonly used: readonly UsableSecret[] } {
  const used = new Map<string, UsableSecret>()
  const resolved = parts.config.resolve(definition, origins, {
    find(name, author, key) {
      const found = usableScopes(author, parts).map((scope) => parts.find(scope, name))
      const narrowest = found.find((secret) => secret !== undefined)
      if (!narrowest) return undefined
      assertPlace(definition, key, name)
      used.set(narrowest.id, narrowest)
      return narrowest.value.reveal()
    },
    onVariable: parts.onVariable,
  })
  const refused = [...used.values()].flatMap((secret) => {
    const why = findBindingConflict(resolved, server, secret)
    return why === undefined ? [] : [{ name: secret.name, why }]
  })
  if (refused.length > 0) {
    const reasons = refused.map(({ name, why }) => `${name} (${why})`).join(', ')
    const missing = refused.map(({ name }) => name)
    throw new GatewayError('variable-missing', `These secrets must not be sent to ${server}: ${reasons}`, { missing })
  }
  return { definition: resolved, used: [...used.values()] }
}

/** Other users of the machine can see the arguments of a process. */
function assertPlace(definition: ServerDefinition, key: string, name: string): void {
  if (definition.transport !== 'stdio' || definition.secretsInArguments) return
  if (key !== 'command' && !key.startsWith('args.')) return
  const field = key.split('.', 1)[0]
  throw new GatewayError(
    'config-invalid',
    `The secret ${name} is used in ${field}, where other users of this machine can see it. Use env instead, or set secretsInArguments`,
    { key },
  )
}

/** The hosts and servers that a secret may be sent to; empty means any. */
export type Binding = { readonly hosts: readonly string[]; readonly servers: readonly string[] }

/**
 * Why the binding of a secret excludes this server; undefined if the secret may be sent. A stdio server has no host, so
 * only a binding to its name allows it.
 */
export function findBindingConflict(
  definition: ServerDefinition,
  server: string,
  { hosts, servers }: Binding,
): string | undefined {
  if (servers.length > 0 && !servers.includes(server)) return `it may only be sent to ${servers.join(', ')}`
  if (hosts.length === 0) return undefined
  const only = `it may only be sent to ${hosts.join(', ')}`
  if (definition.transport === 'stdio') return servers.length > 0 ? undefined : only
  return isHostOf(definition.url, hosts) ? undefined : only
}

function isHostOf(url: string, hosts: readonly string[]): boolean {
  if (!URL.canParse(url)) return false
  const { hostname, host, port, protocol } = new URL(url)
  const withPort = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host
  return hosts.includes(hostname) || hosts.includes(withPort)
}
