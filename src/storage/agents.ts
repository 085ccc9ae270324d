import { type Change, toChangeEntry } from './audit.ts'
import { type AgentsTable, type Database, toStatement } from './database.ts'
import type { Statement, Unit } from './unit.ts'
import type { Writer } from './writer.ts'

export type StoredAgent = {
  readonly name: string
  readonly owner?: string
  readonly description?: string
  readonly createdAt: number
  readonly createdBy?: string
  readonly removedAt?: number
}

/** An agent that comes along with something else, and the entry that tells of it. */
export type NewAgent = { readonly agent: StoredAgent; readonly change: Change }

export type AgentStore = {
  /** The removed ones included. */
  all(): Promise<StoredAgent[]>
  /** `false` when there is one of this name. One that was removed comes back. */
  add(added: NewAgent): Promise<boolean>
  /** `false` when it is not there. */
  change(name: string, fields: { owner?: string; description?: string }, change: Change): Promise<boolean>
  /** Its tokens and sessions end with it; `false` when it is not there. */
  remove(name: string, change: Change): Promise<boolean>
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
    change: (name, fields, change) => commit([toStatement(present().set(fields).where('name', '=', name), 1)], change),
    remove(name, change) {
      const at = now()
      const sessions = database.selectFrom('sessions').select('name').where('agent', '=', name)
      const tokens = database.updateTable('tokens').set({ revoked_at: at }).where('revoked_at', 'is', null)
      return commit(
        [
          toStatement(present().set({ removed_at: at }).where('name', '=', name), 1),
          toStatement(tokens.where('kind', '=', 'agent').where('name', '=', name)),
          toStatement(tokens.where('kind', '=', 'session').where('name', 'in', sessions)),
          toStatement(
            database
              .updateTable('sessions')
              .set({ ended_at: at })
              .where('agent', '=', name)
              .where('ended_at', 'is', null),
          ),
        ],
        change,
      )
    },
  }
}

/** Refused as a whole when there is one of this name. */
export function addAgent(database: Database, { agent, change }: NewAgent, now: number): Unit {
  const insert = database
    .insertInto('agents')
    .values(toRow(agent))
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet(({ ref }) => ({
          owner: ref('excluded.owner'),
          description: ref('excluded.description'),
          removed_at: ref('excluded.removed_at'),
        }))
        .where('agents.removed_at', 'is not', null),
    )
  return [toStatement(insert, 1), { entry: toChangeEntry(change, now) }]
}

function toRow(agent: StoredAgent): AgentsTable {
  return {
    name: agent.name,
    owner: agent.owner ?? null,
    description: agent.description ?? null,
    created_at: agent.createdAt,
    created_by: agent.createdBy ?? null,
    removed_at: agent.removedAt ?? null,
  }
}

function toStoredAgent(row: AgentsTable): StoredAgent {
  return {
    name: row.name,
    owner: row.owner ?? undefined,
    description: row.description ?? undefined,
    createdAt: row.created_at,
    createdBy: row.created_by ?? undefined,
    removedAt: row.removed_at ?? undefined,
  }
}
