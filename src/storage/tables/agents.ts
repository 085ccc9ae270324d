import { type AgentsTable, type Database, retiredName, toStatement } from '../database.ts'
import type { Statement, Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

export type StoredAgent = {
  readonly id: string
  readonly name: string
  readonly ownerId?: string
  readonly description?: string
  readonly createdAt: number
  readonly createdBy?: string
  readonly removedAt?: number
}

/** An agent that is added together with something else, and its audit entry. */
export type NewAgent = { readonly agent: StoredAgent; readonly change: Change }

export type AgentStore = {
  /** Includes removed agents. */
  all(): Promise<StoredAgent[]>
  /** False if an agent of this name exists. */
  add(added: NewAgent): Promise<boolean>
  /** False if the agent does not exist. */
  change(id: string, fields: { ownerId?: string; description?: string }, change: Change): Promise<boolean>
  /** A step of a removal. Afterwards the name is free for another agent. */
  retire(id: string): Statement
}

type AgentStoreParts = { database: Database; writer: Writer; now(): number }

export function createAgentStore({ database, writer, now }: AgentStoreParts): AgentStore {
  async function commit(statements: readonly Statement[], change: Change): Promise<boolean> {
    const outcome = await writer.commit([...statements, { entry: toChangeEntry(change, now()) }])
    if (outcome.kind === 'refused' && outcome.by === 'error') throw new Error(outcome.reason)
    return outcome.kind === 'done'
  }

  const present = () => database.updateTable('agents').where('removed_at', 'is', null)

  return {
    async all() {
      const rows = await database.selectFrom('agents').selectAll().orderBy('name').execute()
      return rows.map(toStoredAgent)
    },
    async add(added) {
      const outcome = await writer.commit(addAgent(database, added, now()))
      if (outcome.kind === 'refused' && outcome.by === 'error') throw new Error(outcome.reason)
      return outcome.kind === 'done'
    },
    change(id, { ownerId, description }, change) {
      const fields = {
        ...(ownerId !== undefined && { owner_id: ownerId }),
        ...(description !== undefined && { description }),
      }
      return commit([toStatement(present().set(fields).where('id', '=', id), 1)], change)
    },
    retire: (id) => toStatement(present().set({ removed_at: now(), name: retiredName }).where('id', '=', id), 1),
  }
}

/** The whole unit is refused if an agent of this name exists. */
export function addAgent(database: Database, { agent, change }: NewAgent, now: number): Unit {
  // An agent of a user who was removed at the same time, or by an earlier version, must not block its name.
  const removed = database.selectFrom('users').select('id').where('removed_at', 'is not', null)
  const orphan = database
    .updateTable('agents')
    .set({ removed_at: now, name: retiredName })
    .where('name', '=', agent.name)
    .where('removed_at', 'is', null)
    .where('owner_id', 'in', removed)
  const insert = database
    .insertInto('agents')
    .values(toRow(agent))
    .onConflict((conflict) => conflict.column('name').doNothing())
  return [toStatement(orphan), toStatement(insert, 1), { entry: toChangeEntry(change, now) }]
}

function toRow(agent: StoredAgent): AgentsTable {
  return {
    id: agent.id,
    name: agent.name,
    owner_id: agent.ownerId ?? null,
    description: agent.description ?? null,
    created_at: agent.createdAt,
    created_by: agent.createdBy ?? null,
    removed_at: agent.removedAt ?? null,
  }
}

function toStoredAgent(row: AgentsTable): StoredAgent {
  return {
    id: row.id,
    name: row.name,
    ownerId: row.owner_id ?? undefined,
    description: row.description ?? undefined,
    createdAt: row.created_at,
    createdBy: row.created_by ?? undefined,
    removedAt: row.removed_at ?? undefined,
  }
}
