import { type ConfigStore, planConfigRemoval } from '../config/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { RemovalPlan, Removed } from '../contract/removal.ts'
import type { Identity } from '../identity/identity.ts'
import { createTurns } from '../lib/turns.ts'
import type { ChangeTopic } from '../storage/changes.ts'
import type { Remover, Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'

export type RemovalKind = RemovalPlan['kind']

export type Removal = {
  /** What would go; changes nothing. */
  plan(by: Principal, kind: RemovalKind, name: string): Promise<RemovalPlan>
  /** Access ends first, then everything that belongs to the identity goes, in one recorded change. */
  remove(by: Principal, kind: RemovalKind, name: string): Promise<Removed>
}

type RemovalParts = {
  readonly storage: Pick<Storage, 'removal' | 'changes'>
  readonly config: Pick<ConfigStore, 'current' | 'change'>
  readonly identity: Pick<Identity, 'subjects'>
  /** One of each noun that keeps something for users, agents or projects. */
  readonly removers: readonly Remover[]
}

/** Each time somebody else changed the user between reading and writing. */
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

  async function cut({ by, target, change }: Going): Promise<void> {
    // A user who changes the password again and again must not be able to prevent the removal.
    for (let tries = 1; tries <= mostTries; tries++) {
      const { guards, steps } = identity.subjects.disable(target)
      const all = [...guards, ...steps, ...removers.flatMap((remover) => remover.cut?.(target.subjects) ?? [])]
      const outcome = await storage.removal.commit(all, { ...change, principal: toPrincipalKey(by) })
      await announce()
      if (outcome === 'done') return
      if (outcome < guards.length)
        throw new GatewayError('last-administrator', `${target.name} is the only administrator`)
    }
    throw new GatewayError('config-conflict', `${target.name} was changed or removed by somebody else at the same time`)
  }

  async function editConfig(by: Principal, subjects: readonly Subject[]): Promise<void> {
    for (const edit of planConfig(by, subjects).edits) await config.change(edit, { by })
  }

  async function remove(by: Principal, kind: RemovalKind, name: string): Promise<Removed> {
    const target = find(by, kind, name)
    const { subjects } = target
    const items = await toPlan(by, subjects)
    const subject = `${kind}:${name}`
    await cut({ by, target, change: { subject, body: { action: `${kind}-removing`, id: target.id, items } } })
    await editConfig(by, subjects).catch((error: unknown) => {
      throw toUnfinished(error, kind, name)
    })
    for (const remover of removers) await remover.settle?.(subjects, `The ${kind} ${name} was removed`)
    const steps = removers.flatMap((remover) => remover.remove?.(subjects) ?? [])
    const body = { action: `${kind}-removed`, id: target.id, items: items.length }
    const outcome = await storage.removal.commit(steps, { principal: toPrincipalKey(by), subject, body })
    await announce()
    if (outcome !== 'done')
      throw new GatewayError('config-conflict', `${kind} ${name} was removed by somebody else at the same time`)
    return { kind, name, items, removed: name }
  }

  return {
    async plan(by, kind, name) {
      return { kind, name, items: await toPlan(by, find(by, kind, name).subjects) }
    },
    remove: (by, kind, name) => inTurn(() => remove(by, kind, name)),
  }
}

type RemovalTarget = ReturnType<Identity['subjects']['find']>

type Going = {
  readonly by: Principal
  readonly target: RemovalTarget
  readonly change: { readonly subject: string; readonly body: Record<string, unknown> }
}

/** Access has ended by then: whoever removes somebody must know what is left to do. */
function toUnfinished(error: unknown, kind: RemovalKind, name: string): GatewayError {
  const { code, message, details } = toGatewayError(error)
  const state =
    kind === 'user' ? 'is disabled' : kind === 'agent' ? 'has no valid tokens any more' : 'has no sessions any more'
  const text = `${message}. The ${kind} ${name} ${state}; the rest was not removed. Correct the configuration, then repeat the removal`
  return new GatewayError(code, text, details, { cause: error })
}
