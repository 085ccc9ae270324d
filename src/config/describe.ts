import type { Rule } from '../contract/rule.ts'
import { globalScope, type Scope, toScopeKey } from '../contract/scope.ts'
import { isSame } from '../documents/values.ts'
import type { Change } from '../storage/tables/audit.ts'
import type { ConfigEdit } from './edit.ts'
import { chainOf, statementsOf } from './scopes.ts'
import type { Views } from './views.ts'

type State = { readonly views: Views }
type Described = Pick<Change, 'subject' | 'body'>

/** Describes an edit for the audit: the subject and the difference. */
export function describeEdit(edit: ConfigEdit, before: State, after: State): Described {
  switch (edit.kind) {
    case 'set-rules':
      return describeRules(edit.scope ?? globalScope, before, after)
    case 'remove-scope': {
      const scope = toScopeKey(edit.scope)
      return { subject: scope, body: { change: 'settings-removed', scope } }
    }
    case 'set-owners':
      return { subject: `project:${edit.project}`, body: { change: 'owners-set', owners: edit.owners } }
    case 'add-project': {
      const { project, title, owners } = edit
      return { subject: `project:${project}`, body: { change: 'project-added', owners, ...(title && { title }) } }
    }
    case 'set-title':
      return { subject: `project:${edit.project}`, body: { change: 'title-set', title: edit.title ?? null } }
    case 'set-repository':
      return {
        subject: `project:${edit.project}`,
        body: { change: 'repository-set', repository: edit.repository ?? null },
      }
    case 'rename-project':
      return { subject: `project:${edit.to}`, body: { change: 'project-renamed', from: edit.project, to: edit.to } }
    case 'add-servers':
      return describeServers(edit)
    case 'leave-project':
      return { subject: `agent:${edit.agent}`, body: { change: 'project-left' } }
    default:
      return describeServer(edit, after)
  }
}

/** The text that the servers come from may contain secrets, so only its kind is recorded. */
function describeServers({ servers, environment, from }: Extract<ConfigEdit, { kind: 'add-servers' }>): Described {
  const described = servers.map(({ name, scope, definition, replaces }) => ({
    name,
    scope: toScopeKey(scope),
    transport: definition.transport,
    change: replaces ? 'changed' : 'added',
  }))
  const body = { change: 'imported', from, servers: described, ...(environment.length > 0 && { environment }) }
  return { subject: 'servers', body }
}

type ServerEdit = Extract<ConfigEdit, { name: string }>

const serverChanges = {
  'add-server': 'added',
  'set-server': 'changed',
  'remove-server': 'removed',
  'set-risks': 'risks-set',
} as const

function describeServer(edit: ServerEdit, { views }: State): Described {
  const { name, scope = globalScope } = edit
  const subject = `server:${name}`
  const key = toScopeKey(scope)
  if (edit.kind === 'enable-server') {
    return { subject, body: { change: edit.enabled ? 'enabled' : 'disabled', scope: key } }
  }
  const change = serverChanges[edit.kind]
  if (edit.kind === 'remove-server') return { subject, body: { change, scope: key } }
  if (edit.kind === 'set-risks') return { subject, body: { change, scope: key, risks: edit.risks } }
  const whole = views.along(chainOf(views.settings, scope)).servers.get(name)?.definition ?? edit.definition
  return { subject, body: { change, transport: whole.transport, scope: key } }
}

function describeRules(scope: Scope, before: State, after: State): Described {
  const [old, now] = [before, after].map(({ views }) => statementsOf(views.settings, scope).rules)
  const key = toScopeKey(scope)
  return { subject: `rules:${key}`, body: { change: 'rules', scope: key, ...toDifference(old ?? [], now ?? []) } }
}

type Placed = { readonly index: number; readonly rule: Rule }
type Difference = { readonly added: Placed[]; readonly removed: Placed[]; readonly reordered?: true }

/** The rules that were removed and added, each with its index. */
function toDifference(before: readonly Rule[], after: readonly Rule[]): Difference {
  const added = without(after, before)
  const removed = without(before, after)
  return added.length + removed.length > 0 ? { added, removed } : { added, removed, reordered: true }
}

function without(rules: readonly Rule[], others: readonly Rule[]): Placed[] {
  const left = [...others]
  return rules.flatMap((rule, index) => {
    const found = left.findIndex((other) => isSame(other, rule))
    if (found === -1) return [{ index, rule }]
    left.splice(found, 1)
    return []
  })
}
