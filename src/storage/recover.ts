import { toCallEntry, toOutcomeBody } from './tables/audit.ts'
import type { CallStore, OpenCall } from './tables/calls.ts'
import type { ConfigChangeStore } from './tables/config-changes.ts'
import type { DeliveryStore } from './tables/deliveries.ts'
import type { InstanceStore } from './tables/instances.ts'
import type { Statement, Unit } from './unit.ts'
import type { Writer } from './writer.ts'

type RecoverParts = {
  writer: Writer
  calls: CallStore
  deliveries: Pick<DeliveryStore, 'release'>
  instances: InstanceStore
  /** Set if the configuration is in this database: then a change without an outcome was not saved either. */
  configChanges?: Pick<ConfigChangeStore, 'unfinished' | 'toEnd'> | undefined
  /** Refuses a unit about an instance that is alive again. */
  lockDeadInstance?: ((instance: string) => Statement) | undefined
  now(): number
}

const perRound = 500

/** Closes the running calls of dead instances as `unknown`, because nobody knows whether they took effect. */
export async function recover(parts: RecoverParts): Promise<{ unknownCalls: number }> {
  const { writer, calls, deliveries, instances, now } = parts
  let unknownCalls = 0
  const dead = (await instances.dead()).map(({ id }) => id)
  if (dead.length === 0) return { unknownCalls }
  await endChanges()
  while (true) {
    const open = await calls.openOf(dead, perRound)
    const outcomes = await Promise.all(open.map((call) => writer.commit(toUnknownUnit(call))))
    const closed = outcomes.filter(({ kind }) => kind === 'done').length
    unknownCalls += closed
    if (closed === 0 || open.length < perRound) break
  }
  for (const id of dead)
    await writer.commit([...locksFor(id), deliveries.release([id]), instances.endDead([id], now())])
  return { unknownCalls }

  async function endChanges(): Promise<void> {
    const { configChanges } = parts
    for (const change of (await configChanges?.unfinished()) ?? []) {
      if (!dead.includes(change.instance)) continue
      await writer.commit([...locksFor(change.instance), ...(configChanges?.toEnd(change, notSaved) ?? [])])
    }
  }

  function locksFor(instance: string): readonly Statement[] {
    return parts.lockDeadInstance ? [parts.lockDeadInstance(instance)] : []
  }

  function toUnknownUnit(call: OpenCall): Unit {
    const endedAt = now()
    const end = { state: 'unknown', endedAt, error } as const
    const body = JSON.stringify(toOutcomeBody(end))
    return [
      ...locksFor(call.instance),
      calls.end(call.id, end),
      { entry: { ...toCallEntry('outcome', call, endedAt), body } },
    ]
  }
}

const notSaved = {
  state: 'not-applied',
  error: { code: 'storage-unavailable', message: 'The gateway ended before it could save the change' },
} as const

const error = { code: 'call-unknown', message: 'The gateway ended while this call was running' }
