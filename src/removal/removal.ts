import { type ConfigStore, planConfigRemoval } from '../config/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { RemovalItem, RemovalPlan, Removed } from '../contract/removal.ts'
import type { Identity } from '../identity/identity.ts'
import { createTurns } from '../lib/turns.ts'
import type { ChangeTopic } from '../storage/changes.ts'
import type { Remover, Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { Change } from '../storage/tables/audit.ts'

export type RemovalKind = RemovalPlan['kind']

export type Removal = {
  /** Lists the items that would be removed, without changing anything. */
  plan(by: Principal, kind: RemovalKind, name: string): Promise<RemovalPlan>
  /** Ends the access first, then removes everything that belongs to the identity, in one recorded change. */
  remove(by: Principal, kind: RemovalKind, name: string): Promise<Removed>
  /** The stored data that belongs to the name of a project, also if no project has the name. */
  listStored(project: string): Promise<RemovalItem[]>
  /** Removes what is stored under the name of a project that does not exist or is new. The caller has checked the rights. */
  clear(by: Principal, project: string): Promise<void>
}

type RemovalParts = {
  readonly storage: Pick<Storage, 'removal' | 'changes'>
  readonly config: Pick<ConfigStore, 'current' | 'change'>
  readonly identity: Pick<Identity, 'subjects'>
  /** A remover deletes the stored data of a removed user, agent or project. Each folder that stores such data has one. */
  readonly removers: readonly Remover[]
}

/** Number of attempts if the user is changed between reading and writing. */
const mostTries = 5

export function createRemoval({ storage, config, identity, removers }: RemovalParts): Removal {
  const inTurn = createTurns()

  function find(by: Principal, kind: RemovalKind, name: string): RemovalTarget {
    const target = identity.subjects.find(by, kind, name)
    const { agents } = config.current()
    const subjects = target.subjects.map((subject) => {
      const stays = subject.kind === 'agent' && by.role !== 'administrator' && Object.hasOwn(agents, subject.name)
      return stays ? { ...subject, settingsStay: true } : subject
    })
    return { ...target, subjects }
  }

  /** A project can be removed from the file by hand. Its stored data stays, and can be removed here. */
  async function findOrLeft(by: Principal, kind: RemovalKind, name: string): Promise<RemovalTarget> {
    try {
      return find(by, kind, name)
    } catch (error) {
      if (kind !== 'project' || !(error instanceof GatewayError) || error.code !== 'not-found') throw error
      if ((await listStored(name)).length === 0) throw error
      return identity.subjects.ofProject(name)
    }
  }

  async function listStored(project: string): Promise<RemovalItem[]> {
    const { subjects } = identity.subjects.ofProject(project)
    const lists = await Promise.all(removers.map((remover) => remover.list(subjects)))
    return lists.flat()
  }

  function planConfig(by: Principal, subjects: readonly Subject[]) {
    return planConfigRemoval(config.current(), subjects, identity.subjects.heirOf(by, subjects))
  }

  async function toPlan(by: Principal, subjects: readonly Subject[]): Promise<RemovalPlan['items']> {
    const lists = await Promise.all(removers.map((remover) => remover.list(subjects)))
    return [...lists.flat(), ...planConfig(by, subjects).items]
  }

  async function announce(): Promise<void> {
    const topics = new Set<ChangeTopic>(removers.flatMap((remover) => remover.topics))
    for (const topic of topics) await storage.changes.announce(topic)
  }

  async function endAccess({ by, target, change }: EndAccess): Promise<void> {
    // Repeated changes, for example of the password, must not prevent the removal.
    for (let tries = 1; tries <= mostTries; tries++) {
      const { guards, steps } = identity.subjects.disable(target)
      const all = [...guards, ...steps, ...removers.flatMap((remover) => remover.cut?.(target.subjects) ?? [])]
      const outcome = await storage.removal.commit(all, { ...change, principal: toPrincipalKey(by) })
      await announce()
      if (outcome === 'done') return
      if (outcome < guards.length)
        throw new GatewayError('last-administrator', `${target.name} is the only administrator`)
    }
    throw new GatewayError(
      'config-conflict',
      `${target.name} was changed or removed by another request at the same time`,
    )
  }

  async function editConfig(by: Principal, subjects: readonly Subject[]): Promise<void> {
    for (const edit of planConfig(by, subjects).edits) await config.change(edit, { by })
  }

  async function remove(by: Principal, kind: RemovalKind, name: string): Promise<Removed> {
    const target = await findOrLeft(by, kind, name)
    const { subjects } = target
    const items = await toPlan(by, subjects)
    const subject = `${kind}:${name}`
    await endAccess({ by, target, change: { subject, body: { action: `${kind}-removing`, id: target.id, items } } })
    await editConfig(by, subjects).catch((error: unknown) => {
      throw toUnfinished(error, kind, name)
    })
    const body = { action: `${kind}-removed`, id: target.id, items: items.length }
    const outcome = await erase(subjects, `The ${kind} ${name} was removed`, {
      principal: toPrincipalKey(by),
      subject,
      body,
    })
    if (outcome !== 'done')
      throw new GatewayError('config-conflict', `${kind} ${name} was removed by another request at the same time`)
    return { kind, name, items, removed: name }
  }

  async function erase(subjects: readonly Subject[], why: string, change: Change): Promise<'done' | number> {
    for (const remover of removers) await remover.settle?.(subjects, why)
    const steps = removers.flatMap((remover) => remover.remove?.(subjects) ?? [])
    const outcome = await storage.removal.commit(steps, change)
    await announce()
    return outcome
  }

  async function clear(by: Principal, project: string): Promise<void> {
    const target = identity.subjects.ofProject(project)
    const subject = `project:${project}`
    const items = await listStored(project)
    const change = { subject, body: { action: 'project-clearing', items } }
    if (items.length > 0) await endAccess({ by, target, change })
    const body = { action: 'project-cleared', items: items.length }
    await erase(target.subjects, `The name ${project} was given up`, { principal: toPrincipalKey(by), subject, body })
  }

  return {
    listStored,
    clear: (by, project) => inTurn(() => clear(by, project)),
    async plan(by, kind, name) {
      return { kind, name, items: await toPlan(by, (await findOrLeft(by, kind, name)).subjects) }
    },
    remove: (by, kind, name) => inTurn(() => remove(by, kind, name)),
  }
}

type RemovalTarget = ReturnType<Identity['subjects']['find']>

type EndAccess = {
  readonly by: Principal
  readonly target: RemovalTarget
  readonly change: { readonly subject: string; readonly body: Record<string, unknown> }
}

/** The access has already ended when this error occurs, so the message says what is left to do. */
function toUnfinished(error: unknown, kind: RemovalKind, name: string): GatewayError {
  const { code, message, details } = toGatewayError(error)
  const state = kind === 'user' ? 'is disabled' : kind === 'agent' ? 'has no valid tokens' : 'has no sessions'
  const text = `${message}. The ${kind} ${name} ${state}, but its data was not removed. Correct the configuration, then repeat the removal`
  return new GatewayError(code, text, details, { cause: error })
}
