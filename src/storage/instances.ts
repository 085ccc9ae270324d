import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { type Database, toStatement } from './database.ts'
import type { Statement } from './unit.ts'

export type InstanceStore = {
  start(at: number): Statement
  end(at: number): Statement
  /** With SQLite one instance lives at a time, the one that has the lock: all others are dead. */
  endDead(at: number): Statement
}

export function createInstanceStore(database: Database, instance: string, bootId: string): InstanceStore {
  return {
    start: (at) =>
      toStatement(
        database.insertInto('instances').values({
          id: instance,
          started_at: at,
          ended_at: null,
          pid: process.pid,
          boot_id: bootId,
          host: hostname(),
          renewed_at: null,
        }),
        1,
      ),
    end: (at) => toStatement(database.updateTable('instances').set({ ended_at: at }).where('id', '=', instance)),
    endDead: (at) =>
      toStatement(
        database
          .updateTable('instances')
          .set({ ended_at: at })
          .where('id', '!=', instance)
          .where('ended_at', 'is', null),
      ),
  }
}

/** A process id means something only until the next boot. */
export function readBootId(now: number): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Elsewhere the time of boot, in minutes, because clock and uptime drift a little against each other.
    return `booted-${Math.round((now / 1000 - uptime()) / 60)}`
  }
}
