import type { ScopedServer } from '../contract/config.ts'
import type { ImportedSecret, ImportedVariable } from '../contract/import.ts'
import { type ScopeKey, toScopeKey } from '../contract/scope.ts'
import type { Need } from '../formats/formats.ts'
import { findLiterals, type Literal } from '../masking/masking.ts'
import type { PlannedServer } from './plan.ts'

export type NeedsParts = {
  /** The secrets that the author sees and that texts of a scope may use, by name. */
  findSecret(scope: ScopeKey, name: string): ScopeKey | undefined
  isListed(name: string): boolean
  trusts(scope: ScopeKey): boolean
}

type Needs = { readonly secrets: readonly ImportedSecret[]; readonly variables: readonly ImportedVariable[] }

/** The secrets and variables of the servers that an import may save. */
export function listNeeds(servers: readonly PlannedServer[], parts: NeedsParts): Needs {
  const secrets = new Map<string, ImportedSecret>()
  const variables = new Map<string, ImportedVariable>()
  const addSecret = (secret: Omit<ImportedSecret, 'servers'>, server: string): void => {
    const key = `${secret.scope} ${secret.name} ${secret.state}`
    const servers = [...new Set([...(secrets.get(key)?.servers ?? []), server])]
    secrets.set(key, { ...secrets.get(key), ...secret, servers })
  }
  for (const planned of servers) {
    if (planned.stated === undefined || planned.outcome === 'same') continue
    const { name, stated, open, needs } = planned
    const scope = toScopeKey(planned.scope)
    for (const literal of findLiterals(name, stated)) addSecret({ name: literal.name, scope, state: 'new' }, name)
    for (const { name: variable, fallback } of listVariables(stated)) {
      const need = needs.find((candidate) => candidate.name === variable)
      const stored = parts.findSecret(scope, variable)
      if (stored !== undefined) addSecret({ name: variable, scope: stored, state: 'stored' }, name)
      else if (isSecret(variable, need, open) || !parts.trusts(scope))
        addSecret({ name: variable, scope, state: 'missing', ...describe(need) }, name)
      else {
        const before = variables.get(variable)
        variables.set(variable, {
          name: variable,
          listed: parts.isListed(variable),
          ...describe(need),
          servers: [...new Set([...(before?.servers ?? []), name])],
          fallback: fallback && (before?.fallback ?? true),
        })
      }
    }
  }
  return { secrets: [...secrets.values()], variables: [...variables.values()] }
}

function isSecret(name: string, need: Need | undefined, open: readonly Literal[]): boolean {
  return need?.secret === true || open.some((literal) => literal.name === name)
}

const longestDescription = 200

function describe(need: Need | undefined): { description?: string } {
  return need?.description === undefined ? {} : { description: need.description.slice(0, longestDescription) }
}

type Variable = { readonly name: string; readonly fallback: boolean }

function listVariables({ command, args = [], env = {}, url, headers = {} }: ScopedServer): Variable[] {
  const texts = [command ?? '', ...args, ...Object.values(env), url ?? '', ...Object.values(headers)]
  return texts.flatMap((text) =>
    [...text.matchAll(/\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-)?/g)].flatMap(([, name, fallback]) =>
      name === undefined ? [] : [{ name, fallback: fallback !== undefined }],
    ),
  )
}
