import type { Config, Repository } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { isPlainObject, type Path, type Step, valueAt } from '../documents/values.ts'
import { matchesAny } from '../lib/glob.ts'
import { pathOfScope } from './check.ts'
import { listScopes, statementsOf } from './scopes.ts'

/** Changes of whole projects. `rename-project` also renames the project in agents and rules. */
export type ProjectEdit =
  | {
      readonly kind: 'add-project'
      readonly project: string
      readonly title?: string | undefined
      readonly owners: readonly string[]
    }
  | { readonly kind: 'set-title'; readonly project: string; readonly title: string | undefined }
  | { readonly kind: 'set-owners'; readonly project: string; readonly owners: readonly string[] }
  | { readonly kind: 'set-repository'; readonly project: string; readonly repository: Repository | undefined }
  | { readonly kind: 'rename-project'; readonly project: string; readonly to: string }
  | { readonly kind: 'leave-project'; readonly agent: string }

export type Planned = { readonly base: Path; readonly steps: readonly Step[] }

export function isProjectEdit(edit: { readonly kind: string }): edit is ProjectEdit {
  return kinds.has(edit.kind)
}

const kinds: ReadonlySet<string> = new Set<ProjectEdit['kind']>([
  'add-project',
  'set-title',
  'set-owners',
  'set-repository',
  'rename-project',
  'leave-project',
])

export function planProject(config: Config, value: unknown, edit: ProjectEdit): Planned[] {
  switch (edit.kind) {
    case 'leave-project': {
      const base = ['agents', edit.agent]
      return [toPlanned([...base, 'project'], undefined, base)]
    }
    case 'add-project': {
      const { title, owners, project } = edit
      demandFree(config, project)
      const base = ['projects', project]
      return [toPlanned(base, { ...(title !== undefined && { title }), owners: [...owners] })]
    }
    case 'set-title':
      return planField(config, edit.project, 'title', edit.title)
    case 'set-owners':
      return planField(config, edit.project, 'owners', [...edit.owners])
    case 'set-repository':
      return planField(config, edit.project, 'repository', edit.repository)
    case 'rename-project':
      return planRename(config, value, edit)
  }
}

function planField(config: Config, project: string, field: string, value: unknown): Planned[] {
  demandKnown(config, project)
  const base = ['projects', project]
  return [toPlanned([...base, field], value, base)]
}

/** All parts are written into one text, so the project, its agents and the rules about it change at once or not at all. */
function planRename(
  config: Config,
  value: unknown,
  { project, to }: { readonly project: string; readonly to: string },
): Planned[] {
  demandKnown(config, project)
  demandFree(config, to)
  const entry = valueAt(value, ['projects', project])
  const members = Object.keys(config.agents).filter((agent) => config.agents[agent]?.project === project)
  return [
    toPlanned(['projects', to], isPlainObject(entry) ? renamedRules(entry, project, to) : {}),
    ...members.map((agent) => toPlanned(['agents', agent, 'project'], to, ['agents', agent])),
    ...listScopes(config).flatMap((scope) => {
      const isOwn = scope.kind === 'project' && scope.name === project
      return isOwn ? [] : planRules(value, [...pathOfScope(scope), 'rules'], project, to)
    }),
    toPlanned(['projects', project], undefined),
  ]
}

function toPlanned(path: Path, value: unknown, base = path): Planned {
  return { base, steps: [{ path, value }] }
}

function planRules(value: unknown, path: Path, project: string, to: string): Planned[] {
  const rules = valueAt(value, path)
  if (!Array.isArray(rules) || !rules.some((rule) => isPlainObject(rule) && rule.project === project)) return []
  return [
    toPlanned(
      path,
      rules.map((rule: unknown) => renamedRule(rule, project, to)),
    ),
  ]
}

function renamedRule(rule: unknown, project: string, to: string): unknown {
  return isPlainObject(rule) && rule.project === project ? { ...rule, project: to } : rule
}

/** The rules of the project itself move with its entry. */
function renamedRules(entry: Readonly<Record<string, unknown>>, project: string, to: string): object {
  if (!Array.isArray(entry.rules)) return entry
  const rules = entry.rules.map((rule: unknown) => renamedRule(rule, project, to))
  return { ...entry, rules }
}

/** Every rule with a condition on the project. */
function listRules(config: Config): { path: Path; pattern: string }[] {
  return listScopes(config).flatMap((scope) =>
    statementsOf(config, scope).rules.flatMap(({ project }, index) =>
      project === undefined ? [] : [{ path: [...pathOfScope(scope), 'rules', index, 'project'], pattern: project }],
    ),
  )
}

/** Conditions of rules with a pattern that matches only one of the two names. A rename would change what they mean. */
export function listPatternsBetween(config: Config, project: string, to: string): string[] {
  return listRules(config)
    .filter(({ pattern }) => pattern !== project && matchesAny([pattern], project) !== matchesAny([pattern], to))
    .map(({ path, pattern }) => `rule ${path.join('.')} (${pattern})`)
}

function demandKnown(config: Config, project: string): void {
  if (!Object.hasOwn(config.projects, project)) throw new GatewayError('not-found', `No project is named ${project}`)
}

function demandFree(config: Config, project: string): void {
  if (Object.hasOwn(config.projects, project))
    throw new GatewayError('name-taken', `A project named ${project} exists already`)
}
