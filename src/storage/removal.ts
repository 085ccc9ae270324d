import type { RemovalItem, RemovalPlan } from '../contract/removal.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { ChangeTopic } from './changes.ts'
import { type Change, toChangeEntry } from './tables/audit.ts'
import type { Statement } from './unit.ts'
import type { Writer } from './writer.ts'

/** One removed identity. Removing a user also removes the user's agents. Every removal also ends the open sessions. */
export type Subject = {
  readonly kind: RemovalPlan['kind'] | 'session'
  readonly name: string
  readonly id: string
  /** True if administrators wrote settings for this agent and a member removes it: its settings, pins and secrets stay. */
  readonly settingsStay?: boolean
}

/**
 * Removes the data of one kind (secrets, grants, …) together with a user, an agent or a project. Each kind has its own
 * remover, and a removal calls all of them.
 */
export type Remover = {
  /** Lists what will be removed, to show to the person who decides. */
  list(subjects: readonly Subject[]): Promise<RemovalItem[]>
  /** Statements that end access. Committed together with the intent, before anything is removed. */
  cut?(subjects: readonly Subject[]): readonly Statement[]
  /** Statements that remove data. Committed together with the outcome. */
  remove?(subjects: readonly Subject[]): readonly Statement[]
  /** Runs after access has ended and before the outcome is committed, so that an interrupted removal can be repeated. */
  settle?(subjects: readonly Subject[], why: string): Promise<void>
  /** The topics that instances must read again. */
  readonly topics: readonly ChangeTopic[]
}

export type RemovalStore = {
  /** Commits the steps and the entry in one unit. Returns `done`, or the index of the step that was refused. */
  commit(steps: readonly Statement[], change: Change): Promise<'done' | number>
}

export function createRemovalStore({ writer, now }: { writer: Writer; now(): number }): RemovalStore {
  return {
    async commit(steps, change) {
      const outcome = await writer.commit([...steps, { entry: toChangeEntry(change, now()) }])
      if (outcome.kind === 'done') return 'done'
      if (outcome.by === 'error') throw new Error(outcome.reason)
      return outcome.step
    },
  }
}

export function idsOf(subjects: readonly Subject[], kind?: Subject['kind']): string[] {
  return subjects.filter((subject) => kind === undefined || subject.kind === kind).map(({ id }) => id)
}

export function namesOf(subjects: readonly Subject[], kind: Subject['kind']): string[] {
  return subjects.filter((subject) => subject.kind === kind).map(({ name }) => name)
}

export function scopesOf(subjects: readonly Subject[]): ScopeKey[] {
  return subjects.map(({ kind, name }): ScopeKey => `${kind}:${name}`)
}

/** The scopes whose settings are removed as well. */
export function goneScopesOf(subjects: readonly Subject[]): ScopeKey[] {
  return scopesOf(subjects.filter(({ settingsStay }) => !settingsStay))
}
