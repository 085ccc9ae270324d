import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { GatewayError } from '../contract/errors.ts'
import type { Database, Tables } from './database.ts'
import type { Statement, Unit, UnitOutcome } from './unit.ts'

export type QueryPorts = {
  query(statement: Statement): Promise<readonly unknown[]>
  commit(unit: Unit): Promise<UnitOutcome>
}

export function createSqliteDatabase(ports: QueryPorts): Database {
  return createDatabase(ports, {
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (database) => new SqliteIntrospector(database),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  })
}

export function createPostgresDatabase(ports: QueryPorts): Database {
  return createDatabase(ports, {
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (database) => new PostgresIntrospector(database),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  })
}

/** Runs Kysely queries through the writer: selects as queries, each other statement as its own unit. */
function createDatabase(ports: QueryPorts, dialect: Omit<Dialect, 'createDriver'>): Database {
  const connection: DatabaseConnection = {
    async executeQuery<Row>(compiled: CompiledQuery): Promise<QueryResult<Row>> {
      if (SelectQueryNode.is(compiled.query)) return { rows: toRows<Row>(await ports.query(compiled)) }
      const outcome = await ports.commit([{ sql: compiled.sql, parameters: compiled.parameters }])
      if (outcome.kind === 'refused')
        throw new GatewayError('internal', `The database refused the statement: ${outcome.reason}`)
      return { rows: toRows<Row>(outcome.rows), numAffectedRows: BigInt(outcome.changes) }
    },
    streamQuery() {
      throw new Error('Streaming is not supported; read rows in pages')
    },
  }
  return new Kysely<Tables>({ dialect: { ...dialect, createDriver: () => createDriver(connection) } })
}

function createDriver(connection: DatabaseConnection): Driver {
  const noTransactions = async () => {
    throw new Error('Transactions are not supported; put the statements into one unit')
  }
  return {
    async init() {},
    acquireConnection: async () => connection,
    beginTransaction: noTransactions,
    commitTransaction: noTransactions,
    rollbackTransaction: noTransactions,
    async releaseConnection() {},
    async destroy() {},
  }
}

function toRows<Row>(rows: readonly unknown[]): Row[] {
  return rows as Row[] // Kysely derives the row type from the query
}
