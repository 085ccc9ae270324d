import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import type { Ids } from '../../lib/ids.ts'
import { parseJson } from '../../lib/json.ts'
import { type ConfigChangesTable, type Database, toStatement } from '../database.ts'
import type { Statement, Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry, toChangeOutcomeEntry } from './audit.ts'
import { toNote } from './documents.ts'

/** Keyed digests of the parts of a configuration: they show what differs, without the values themselves. */
export type ConfigMarks = Readonly<Record<string, string>>

/** Who made the configuration that is in force what it is, and its marks. */
export type ConfigInForce = { readonly by: string; readonly marks: ConfigMarks }

/** `unknown`: nobody can say whether the change was in force for a moment, because the file differs from both. */
export type ChangeOutcome = {
  readonly state: 'applied' | 'not-applied' | 'unknown'
  readonly error?: { readonly code: string; readonly message: string }
}

/** `inForce` is the configuration after the change. */
export type NewConfigChange = Change & { readonly inForce: ConfigInForce }

/** A change whose intent is recorded. */
export type BegunChange = {
  readonly id: string
  readonly instance: string
  readonly principal: string
  readonly subject: string
  readonly inForce: ConfigInForce
}

export type ConfigChangeStore = {
  /** Resolves when the intent is durable. Until then the change must not take effect. */
  begin(change: NewConfigChange): Promise<BegunChange>
  /** The steps that record the outcome, for whoever commits them together with the change itself. */
  toEnd(change: BegunChange, outcome: ChangeOutcome): Unit
  /**
   * Records the outcome; a change that has one already keeps it. Does not throw: while the store cannot write, the
   * outcome is kept and written as soon as it can.
   */
  end(change: BegunChange, outcome: ChangeOutcome): Promise<void>
  /** Changes that other instances began and did not end. */
  unfinished(): Promise<BegunChange[]>
  findInForce(): Promise<ConfigInForce | undefined>
  keepInForce(inForce: ConfigInForce): Promise<void>
}

type ConfigChangeParts = { database: Database; writer: Writer; ids: Ids; instance: string; now(): number }

const inForceName = 'config-in-force'
const InForce = z.object({ by: z.string(), marks: z.record(z.string(), z.string()) })

export function createConfigChangeStore(parts: ConfigChangeParts): ConfigChangeStore {
  const { database, writer, ids, instance, now } = parts

  function toEnd(change: BegunChange, outcome: ChangeOutcome): Unit {
    const { id, principal, subject, inForce } = change
    const remove = toStatement(database.deleteFrom('config_changes').where('id', '=', id), 1)
    const entry = toChangeOutcomeEntry({ principal, subject, body: { id, ...outcome } }, now())
    return [remove, { entry }, ...(outcome.state === 'applied' ? [keep(inForce)] : [])]
  }

  function keep(inForce: ConfigInForce): Statement {
    return toNote(database, { name: inForceName, text: JSON.stringify(inForce) }, now())
  }

  return {
    async begin({ inForce, ...change }) {
      const id = ids.next('change')
      const { principal, subject } = change
      const row: ConfigChangesTable = {
        id,
        instance,
        principal,
        subject,
        marks: JSON.stringify(inForce.marks),
        begun_at: now(),
      }
      const entry = toChangeEntry({ ...change, body: { ...change.body, id } }, now())
      const begun = await writer.commit([toStatement(database.insertInto('config_changes').values(row), 1), { entry }])
      if (begun.kind === 'refused') throw new GatewayError('storage-unavailable', begun.reason)
      return { id, instance, principal, subject, inForce }
    },
    toEnd,
    async end(change, outcome) {
      const unit = toEnd(change, outcome)
      await writer.commit(unit).catch(() => writer.keep(unit))
    },
    async unfinished() {
      const rows = await database
        .selectFrom('config_changes')
        .selectAll()
        .where('instance', '!=', instance)
        .orderBy('id')
        .execute()
      return rows.map(toBegun)
    },
    async findInForce() {
      const row = await database
        .selectFrom('documents')
        .select('body')
        .where('name', '=', inForceName)
        .executeTakeFirst()
      return row && InForce.parse(parseJson(row.body))
    },
    async keepInForce(inForce) {
      await writer.commit([keep(inForce)])
    },
  }
}

function toBegun({ id, instance, principal, subject, marks }: ConfigChangesTable): BegunChange {
  return {
    id,
    instance,
    principal,
    subject,
    inForce: { by: principal, marks: InForce.shape.marks.parse(parseJson(marks)) },
  }
}
