import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import type { Ids } from '../../lib/ids.ts'
import { parseJson } from '../../lib/json.ts'
import { type ConfigChangesTable, type Database, toStatement } from '../database.ts'
import type { Statement, Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry, toChangeOutcomeEntry } from './audit.ts'
import { toNote } from './documents.ts'

/** Keyed digests of the parts of a configuration. They show which parts differ, without revealing values. */
export type ConfigMarks = Readonly<Record<string, string>>

/** The marks of the current configuration, and the principal that last changed it. */
export type ConfigInForce = { readonly by: string; readonly marks: ConfigMarks }

/**
 * `unknown`: the file differs from both the old and the new configuration, so the change may have been in effect
 * briefly.
 */
export type ChangeOutcome = {
  readonly state: 'applied' | 'not-applied' | 'unknown'
  readonly error?: { readonly code: string; readonly message: string }
}

/** `inForce` describes the configuration after the change. */
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
  /** Resolves when the intent is durable. The change must not take effect before that. */
  begin(change: NewConfigChange): Promise<BegunChange>
  /** The steps that record the outcome, for callers that commit them together with the change. */
  toEnd(change: BegunChange, outcome: ChangeOutcome): Unit
  /**
   * Records the outcome. An existing outcome is not replaced. Does not throw: if the database cannot be written, the
   * outcome is queued.
   */
  end(change: BegunChange, outcome: ChangeOutcome): Promise<void>
  /** Changes that other instances began and did not end. */
  unfinished(): Promise<BegunChange[]>
  findInForce(): Promise<ConfigInForce | undefined>
  keepInForce(inForce: ConfigInForce): Promise<void>
  /** The steps of `keepInForce`, for callers that commit them together with the text. */
  toKeep(inForce: ConfigInForce): Unit
  /** Stores the marks if none are stored. */
  keepFirst(inForce: ConfigInForce): Promise<void>
}

type ConfigChangeParts = { database: Database; writer: Writer; ids: Ids; instance: string; now(): number }

/** Name of the note with the marks in the table `documents`. */
export const inForceName = 'config-in-force'
const InForce = z.object({ by: z.string(), marks: z.record(z.string(), z.string()) })

export function parseInForce(text: string): ConfigInForce {
  return InForce.parse(parseJson(text))
}

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
      return row && parseInForce(row.body)
    },
    async keepInForce(inForce) {
      await writer.commit([keep(inForce)])
    },
    toKeep: (inForce) => [keep(inForce)],
    async keepFirst(inForce) {
      const row = { name: inForceName, version: 1, format: 'note', body: JSON.stringify(inForce), updated_at: now() }
      const insert = database.insertInto('documents').values(row)
      await writer.commit([toStatement(insert.onConflict((conflict) => conflict.column('name').doNothing()))])
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
