import { z } from 'zod'
import { PinKind } from '../../contract/pin.ts'
import { compiledOnce, type Database, type PinsTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

/** Identifies a definition: its server, its kind, and its name on the server. */
export type PinKey = {
  readonly server: string
  readonly scope: string
  readonly kind: PinKind
  readonly name: string
}

/** A definition as its server sent it, and its hash. */
export type Definition = { readonly hash: string; readonly text: string }

export type StoredPin = PinKey & {
  readonly state: 'accepted' | 'blocked' | 'waiting'
  readonly accepted: Definition | undefined
  /** Accepted automatically with the first list of its server. */
  readonly baseline: boolean
  readonly decidedBy: string | undefined
  /** Decided by an administrator. Such a decision applies to every scope. */
  readonly byAdministrator: boolean
  readonly decidedAt: number | undefined
  /** The last definition that was not accepted, so that people can see it while the server is disconnected. */
  readonly seen: (Definition & { readonly at: number }) | undefined
}

export type PinStore = {
  all(): Promise<StoredPin[]>
  /** Stores the first list of a server, in one unit. Pins that another instance stored first are not changed. */
  addBaseline(pins: readonly StoredPin[], change: Change): Promise<void>
  /** Stores decisions and their audit entries in one unit. */
  decide(pins: readonly StoredPin[], changes: readonly Change[]): Promise<void>
  /** Stores what a server sends now, with its audit entry. Decisions are not changed. */
  note(pins: readonly StoredPin[], change: Change): Promise<void>
  /** Removes all pins of a server that no longer exists. */
  forget(server: string, scope: string, change: Change): Promise<void>
  /** A step of a removal: removes all pins of these scopes. */
  removeAll(scopes: readonly string[]): Statement
}

type PinStoreParts = { database: Database; writer: Writer; now(): number }

export function createPinStore({ database, writer, now }: PinStoreParts): PinStore {
  const key = ['server', 'scope', 'kind', 'name'] as const
  const insert = (row: PinsTable) => database.insertInto('pins').values(row)
  const values = (row: PinsTable) => Object.values(row)
  const addNew = compiledOnce((row: PinsTable) => insert(row).onConflict((on) => on.columns(key).doNothing()), values)
  const replace = compiledOnce(
    (row: PinsTable) =>
      insert(row).onConflict((on) =>
        on.columns(key).doUpdateSet(({ ref }) => ({
          state: ref('excluded.state'),
          hash: ref('excluded.hash'),
          definition: ref('excluded.definition'),
          baseline: ref('excluded.baseline'),
          decided_by: ref('excluded.decided_by'),
          by_administrator: ref('excluded.by_administrator'),
          decided_at: ref('excluded.decided_at'),
          seen_hash: ref('excluded.seen_hash'),
          seen_definition: ref('excluded.seen_definition'),
          seen_at: ref('excluded.seen_at'),
        })),
      ),
    values,
  )
  const see = compiledOnce(
    (row: PinsTable) =>
      insert(row).onConflict((on) =>
        on.columns(key).doUpdateSet(({ ref }) => ({
          seen_hash: ref('excluded.seen_hash'),
          seen_definition: ref('excluded.seen_definition'),
          seen_at: ref('excluded.seen_at'),
        })),
      ),
    values,
  )

  async function commit(toStep: typeof replace, pins: readonly StoredPin[], changes: readonly Change[]): Promise<void> {
    const entries = changes.map((change) => ({ entry: toChangeEntry(change, now()) }))
    const outcome = await writer.commit([...pins.map((pin) => toStep(toRow(pin))), ...entries])
    if (outcome.kind === 'refused') throw new Error(`The pins were not stored: ${outcome.reason}`)
  }

  return {
    async all() {
      await writer.settled()
      return (await database.selectFrom('pins').selectAll().execute()).map(toStoredPin)
    },
    addBaseline: (pins, change) => commit(addNew, pins, [change]),
    decide: (pins, changes) => commit(replace, pins, changes),
    note: (pins, change) => commit(see, pins, [change]),
    removeAll: (scopes) => toStatement(database.deleteFrom('pins').where('scope', 'in', [...scopes, ''])),
    async forget(server, scope, change) {
      const remove = database.deleteFrom('pins').where('server', '=', server).where('scope', '=', scope)
      await writer.commit([toStatement(remove), { entry: toChangeEntry(change, now()) }])
    },
  }
}

function toRow(pin: StoredPin): PinsTable {
  return {
    server: pin.server,
    scope: pin.scope,
    kind: pin.kind,
    name: pin.name,
    state: pin.state,
    hash: pin.accepted?.hash ?? null,
    definition: pin.accepted?.text ?? null,
    baseline: pin.baseline ? 1 : 0,
    decided_by: pin.decidedBy ?? null,
    by_administrator: pin.byAdministrator ? 1 : 0,
    decided_at: pin.decidedAt ?? null,
    seen_hash: pin.seen?.hash ?? null,
    seen_definition: pin.seen?.text ?? null,
    seen_at: pin.seen?.at ?? null,
  }
}

const State = z.enum(['accepted', 'blocked', 'waiting'])

function toStoredPin(row: PinsTable): StoredPin {
  const { hash, definition, seen_hash, seen_definition, seen_at } = row
  return {
    server: row.server,
    scope: row.scope,
    kind: PinKind.parse(row.kind),
    name: row.name,
    state: State.parse(row.state),
    accepted: hash === null ? undefined : { hash, text: definition ?? '' },
    baseline: row.baseline === 1,
    decidedBy: row.decided_by ?? undefined,
    byAdministrator: row.by_administrator === 1,
    decidedAt: row.decided_at ?? undefined,
    seen: seen_hash === null ? undefined : { hash: seen_hash, text: seen_definition ?? '', at: Number(seen_at) },
  }
}
