import type { ConfigStore } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { SecretValue } from '../lib/secret.ts'
import { type Ownership, usableScopes } from './scopes.ts'

/** A definition whose templates are to be filled in, and who wrote each of its texts. */
export type Templated = {
  readonly name: string
  readonly definition: ServerDefinition
  /** By dotted key. */
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

/** The last step before a connection is made: here, and nowhere else, values are revealed. Throws `variable-missing`. */
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
  const astray = [...used.values()].flatMap((secret) => {
    const why = findElsewhere(resolved, server, secret)
    return why === undefined ? [] : [{ name: secret.name, why }]
  })
  if (astray.length > 0) {
    const reasons = astray.map(({ name, why }) => `${name} (${why})`).join(', ')
    const missing = astray.map(({ name }) => name)
    throw new GatewayError('variable-missing', `Not handed to ${server}: ${reasons}`, { missing })
  }
  return { definition: resolved, used: [...used.values()] }
}

/** Other users of the machine see the arguments of a process. */
function assertPlace(definition: ServerDefinition, key: string, name: string): void {
  if (definition.transport !== 'stdio' || definition.secretsInArguments) return
  if (key !== 'command' && !key.startsWith('args.')) return
  const field = key.split('.', 1)[0]
  throw new GatewayError(
    'config-invalid',
    `The secret ${name} stands in ${field}, where other users of the machine can see it: hand it over in env, or set secretsInArguments`,
    { key },
  )
}

type Binding = { readonly hosts: readonly string[]; readonly servers: readonly string[] }

/** Why a secret may not go to this server, if it may not. A program has no host: only its name can be bound. */
function findElsewhere(definition: ServerDefinition, server: string, { hosts, servers }: Binding): string | undefined {
  if (servers.length > 0 && !servers.includes(server)) return `the secret is only for ${servers.join(', ')}`
  if (hosts.length === 0) return undefined
  const only = `the secret is only for ${hosts.join(', ')}`
  if (definition.transport === 'stdio') return servers.length > 0 ? undefined : only
  return isHostOf(definition.url, hosts) ? undefined : only
}

function isHostOf(url: string, hosts: readonly string[]): boolean {
  if (!URL.canParse(url)) return false
  const { hostname, host, port, protocol } = new URL(url)
  const withPort = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host
  return hosts.includes(hostname) || hosts.includes(withPort)
}
