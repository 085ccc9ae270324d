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
  /** Where the configuration is in this database: a change that was not ended was not saved either. */
  configChanges?: Pick<ConfigChangeStore, 'unfinished' | 'toEnd'> | undefined
  /** Refuses a unit about an instance that is back. */
  holdDeath?: ((instance: string) => Statement) | undefined
  now(): number
}

const perRound = 500

/** Nobody knows whether the calls that a dead instance had sent took effect: that is their end. */
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
    await writer.commit([...holdsFor(id), deliveries.release([id]), instances.endDead([id], now())])
  return { unknownCalls }

  async function endChanges(): Promise<void> {
    const { configChanges } = parts
    for (const change of (await configChanges?.unfinished()) ?? []) {
      if (!dead.includes(change.instance)) continue
      await writer.commit([...holdsFor(change.instance), ...(configChanges?.toEnd(change, notSaved) ?? [])])
    }
  }

  function holdsFor(instance: string): readonly Statement[] {
    return parts.holdDeath ? [parts.holdDeath(instance)] : []
  }

  function toUnknownUnit(call: OpenCall): Unit {
    const endedAt = now()
    const end = { state: 'unknown', endedAt, error } as const
    const body = JSON.stringify(toOutcomeBody(end))
    return [
      ...holdsFor(call.instance),
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
