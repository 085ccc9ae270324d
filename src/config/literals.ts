import type { Config, ScopedServer } from '../contract/config.ts'
import type { Scope } from '../contract/scope.ts'
import { toScopeKey } from '../contract/scope.ts'
import { findLiterals, hideAllLiterals, type Literal } from '../masking/masking.ts'
import type { Finding } from './problems.ts'
import { toShownWebhooks } from './webhooks.ts'

/** The configuration for display: nobody sees the secrets that are written in it. */
export function toShownConfig(config: Config): Config {
  return {
    ...config,
    servers: hideAllLiterals(config.servers),
    projects: hideScopes(config.projects),
    agents: hideScopes(config.agents),
    users: hideScopes(config.users),
    webhooks: toShownWebhooks(config),
  }
}

function hideScopes<Settings extends { readonly servers: Readonly<Record<string, ScopedServer>> }>(
  scopes: Readonly<Record<string, Settings>>,
): Record<string, Settings> {
  const hidden = Object.entries(scopes).map(([name, settings]): [string, Settings] => [
    name,
    { ...settings, servers: hideAllLiterals(settings.servers) },
  ])
  return Object.fromEntries(hidden)
}

/** Warns about secrets that are written in the definitions of a scope, with the command that stores each. */
export function listLiterals(servers: Readonly<Record<string, ScopedServer>>, scope: Scope): Finding[] {
  return Object.entries(servers).flatMap(([server, entry]) =>
    findLiterals(server, entry).map((literal) => ({
      path: toPath(server, literal),
      message: toMessage(literal, scope),
    })),
  )
}

function toPath(server: string, { place }: Literal): (string | number)[] {
  const inner = place.field === 'args' ? [place.index] : 'key' in place ? [place.key] : []
  return ['servers', server, place.field, ...inner]
}

function toMessage({ name, place }: Literal, scope: Scope): string {
  const option = scope.kind === 'global' ? '' : ` --scope ${toScopeKey(scope)}`
  const inArguments = place.field === 'args' || place.field === 'command'
  const also = inArguments ? ' and set secretsInArguments' : ''
  return `is a secret in plain text: store it with \`sallyport secrets set ${name}${option}\`, and write \${${name}} instead${also}`
}
