import type { Config } from '../contract/config.ts'
import type { RemovalItem } from '../contract/removal.ts'
import type { Scope } from '../contract/scope.ts'
import { own } from '../documents/values.ts'
import type { ConfigEdit } from './edit.ts'

type Gone = {
  readonly kind: 'user' | 'agent' | 'project' | 'session'
  readonly name: string
  /** Administrators wrote the settings of this agent, and a user who is not an administrator removes it. */
  readonly settingsStay?: boolean
}

/** The settings under the removed names, and the edits that remove them. */
export type ConfigRemoval = { readonly items: readonly RemovalItem[]; readonly edits: readonly ConfigEdit[] }

/**
 * `heir` becomes the owner of projects that would have no owner left. A project without owners would be trusted like a
 * scope of administrators.
 */
export function planConfigRemoval(config: Config, gone: readonly Gone[], heir: string): ConfigRemoval {
  const plans = gone.flatMap(({ kind, name, settingsStay }) => {
    if (kind === 'user') return [planScope(config, { kind, name }), ...planOwnership(config, name, heir)]
    if (kind === 'project') return [...planMembers(config, name), planScope(config, { kind, name })]
    if (kind === 'session') return [] // its settings are stored with the session
    return [settingsStay ? planKept(name) : planScope(config, { kind, name })]
  })
  return { items: plans.flatMap(({ items }) => items), edits: plans.flatMap(({ edits }) => edits) }
}

const nothing: ConfigRemoval = { items: [], edits: [] }

type ConfigScope = { readonly kind: 'user' | 'agent' | 'project'; readonly name: string }

function planScope(config: Config, { kind, name }: ConfigScope): ConfigRemoval {
  const entry = own(config[`${kind}s`], name)
  const scope: Scope = { kind, name }
  // An earlier request of the user may still write an entry. This edit runs after it and removes the entry.
  if (entry === undefined) return kind === 'user' ? { items: [], edits: [{ kind: 'remove-scope', scope }] } : nothing
  const servers = Object.keys(entry.servers).map((server) => ({ noun: 'server', name: `${server} of ${kind}:${name}` }))
  const rules = entry.rules.length > 0 ? [{ noun: 'rules', name: `${entry.rules.length} of ${kind}:${name}` }] : []
  return {
    items: [...servers, ...rules, { noun: 'configuration', name: `${kind}s.${name}` }],
    edits: [{ kind: 'remove-scope', scope }],
  }
}

function planKept(name: string): ConfigRemoval {
  const effect = 'stays; only administrators can reuse the name'
  return { items: [{ noun: 'configuration', name: `agents.${name}`, effect }], edits: [] }
}

function planOwnership(config: Config, user: string, heir: string): ConfigRemoval[] {
  return Object.entries(config.projects).flatMap(([project, { owners }]) => {
    if (!owners.includes(user)) return []
    const others = owners.filter((owner) => owner !== user)
    const left = others.length > 0 ? others : [heir]
    const effect = others.length > 0 ? `loses the owner ${user}` : `gets the owner ${heir} instead of ${user}`
    return [
      { items: [{ noun: 'project', name: project, effect }], edits: [{ kind: 'set-owners', project, owners: left }] },
    ]
  })
}

/** An agent that refers to a removed project would be a mistake in the file. */
function planMembers(config: Config, project: string): ConfigRemoval[] {
  return Object.entries(config.agents).flatMap(([agent, settings]) => {
    if (settings.project !== project) return []
    const effect = `leaves the project ${project}`
    return [{ items: [{ noun: 'agent', name: agent, effect }], edits: [{ kind: 'leave-project', agent }] }]
  })
}
