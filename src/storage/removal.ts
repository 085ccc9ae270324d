import type { RemovalItem, RemovalPlan } from '../contract/removal.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { ChangeTopic } from './changes.ts'
import { type Change, toChangeEntry } from './tables/audit.ts'
import type { Statement } from './unit.ts'
import type { Writer } from './writer.ts'

/** One identity that goes. The removal of a user has the user's agents as further subjects, and every removal the open sessions. */
export type Subject = {
  readonly kind: RemovalPlan['kind'] | 'session'
  readonly name: string
  readonly id: string
  /** Administrators wrote the settings under this name and a member removes the agent: settings, pins and secrets stay. */
  readonly settingsStay?: boolean
}

/**
 * What a noun removes together with a user, an agent or a project. Each noun has one; the removal asks all of them, so a new
 * noun only adds its own.
 */
export type Remover = {
  /** What will go, for whoever decides. */
  list(subjects: readonly Subject[]): Promise<RemovalItem[]>
  /** Ends access. Committed together with the intent, before anything is removed. */
  cut?(subjects: readonly Subject[]): readonly Statement[]
  /** Committed together with the outcome. */
  remove?(subjects: readonly Subject[]): readonly Statement[]
  /** After access has ended and before the outcome is committed, so that a removal that was interrupted can be repeated. */
  settle?(subjects: readonly Subject[], why: string): Promise<void>
  /** What has to be read again. */
  readonly topics: readonly ChangeTopic[]
}

export type RemovalStore = {
  /** The steps and the entry in one commit; otherwise the number of the step that refused it. */
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

/** The scopes whose settings go as well. */
export function goneScopesOf(subjects: readonly Subject[]): ScopeKey[] {
  return scopesOf(subjects.filter(({ settingsStay }) => !settingsStay))
}
