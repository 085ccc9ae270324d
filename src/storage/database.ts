import { type CompiledQuery, type Kysely, sql } from 'kysely'
import type { Statement } from './unit.ts'

export type InstancesTable = {
  id: string
  started_at: number
  ended_at: number | null
  pid: number
  boot_id: string
  host: string
  renewed_at: number | null
  /** Pid namespace and start time. Null if /proc does not exist, for rows of older versions, and after a regular stop. */
  process: string | null
}

export type CallsTable = {
  id: string
  method: string
  tool: string
  original: string
  server: string
  scope: string
  connection: string
  principal: string
  principal_id: string
  owner: string
  surface: string
  risk: string
  state: string
  arguments: string
  meta: string | null
  decision: string
  error_code: string | null
  error_message: string | null
  late: number
  resent: number
  started_at: number
  ended_at: number | null
  duration_ms: number | null
  result_bytes: number | null
  given_bytes: number | null
  masked: number | null
  instance: string
}

export type AuditTable = {
  instance: string
  sequence: number
  at: number
  kind: string
  call: string | null
  principal: string
  subject: string
  body: string
  /** Links the entry to the one before. Empty for entries that were written before the chain existed. */
  hash: string
}

export type UsersTable = {
  /** Rows of other tables refer to this id. */
  id: string
  /** `<name>~<id>` for a removed user, so that the name can be used again. */
  name: string
  role: string
  /** JSON: names of groups. */
  member_of: string
  password: string
  created_at: number
  created_by: string
  signed_in_at: number | null
  disabled_at: number | null
  removed_at: number | null
  revision: number
}

export type SignInsTable = {
  id: string
  hash: string
  user_name: string
  user_id: string
  created_at: number
  last_used_at: number
  expires_at: number
  revoked_at: number | null
}

export type AgentsTable = {
  id: string
  /** `<name>~<id>` for a removed agent. */
  name: string
  owner_id: string | null
  description: string | null
  created_at: number
  created_by: string | null
  removed_at: number | null
}

export type SessionsTable = {
  name: string
  owner_id: string | null
  agent_id: string | null
  project: string | null
  /** JSON: the session's settings for servers. */
  servers: string
  created_at: number
  created_by: string
  expires_at: number
  ended_at: number | null
}

export type TokensTable = {
  id: string
  kind: string
  name: string
  /** The id of the agent or the session. */
  holder_id: string
  prefix: string
  hash: string
  created_at: number
  last_used_at: number | null
  expires_at: number | null
  revoked_at: number | null
  created_by: string | null
}

export type ChildrenTable = {
  pid: number
  instance: string
  boot_id: string
  start_time: string
  connection: string
  started_at: number
}

export type MemoryTable = { key: string; value: string; updated_at: number }

/** The number of the last committed batch of an instance. */
export type BatchesTable = { instance: string; number: number }

export type ConfigChangesTable = {
  id: string
  instance: string
  principal: string
  subject: string
  /** JSON: keyed digests of the parts of the configuration after the change. */
  marks: string
  begun_at: number
}

/** Texts that all instances share, such as the configuration. */
export type DocumentsTable = { name: string; version: number; format: string; body: string; updated_at: number }

/**
 * The stored rest of a truncated result. `id` is a digest of the handle, so that the database does not reveal the
 * handle.
 */
export type ResultsTable = {
  id: string
  /** The id of the principal that may read it. */
  principal: string
  form: string
  characters: number
  created_at: number
  used_at: number
}

/** A piece of a result as JSON text, because JSON escapes the characters that a database cannot store. */
export type ResultPartsTable = { result: string; from_at: number; to_at: number; text: string }

export type IdempotencyTable = {
  /** The id of the principal that used the key. */
  principal: string
  idempotency_key: string
  hash: string
  call: string
  state: string
  response: string | null
  created_at: number
  expires_at: number
}

export type SecretsTable = {
  id: string
  scope: string
  /** The id of the user, if the scope is a user; null for every other scope. */
  owner_id: string | null
  name: string
  ciphertext: string
  key_version: number
  hosts: string
  servers: string
  masked: number
  created_at: number
  created_by: string
  updated_at: number
  updated_by: string
  last_used_at: number | null
}

export type SecretKeysTable = { version: number; proof: string; created_at: number }

export type PinsTable = {
  server: string
  scope: string
  kind: string
  name: string
  state: string
  hash: string | null
  definition: string | null
  baseline: number
  decided_by: string | null
  by_administrator: number
  decided_at: number | null
  seen_hash: string | null
  seen_definition: string | null
  seen_at: number | null
}

export type ServerEntriesTable = {
  scope: string
  name: string
  mark: string
  created_at: number
  updated_at: number
}

export type ToolNamesTable = { space: string; name: string; server: string; tool: string; assigned_at: number }

export type ApprovalsTable = {
  id: string
  live: string | null
  call: string
  principal: string
  principal_id: string
  owner: string | null
  tool: string
  server: string
  server_title: string | null
  title: string
  description: string | null
  risk: string
  arguments: string
  input: string | null
  meta: string | null
  meta_hash: string | null
  hash: string
  definition: string
  arguments_hash: string
  reason: string
  approvers: string
  state: string
  answers: string
  grant_id: string | null
  requested_at: number
  expires_at: number
  ended_at: number | null
  instance: string
  drift: string | null
  withdrawn_because: string | null
}

export type GrantsTable = {
  id: string
  tools: string
  arguments: string | null
  exactly: string | null
  meta: string | null
  principal: string | null
  principal_id: string | null
  scope: string | null
  definitions: string
  budget: number
  used: number
  expires_at: number
  reason: string | null
  given_by: string
  giver_id: string
  given_at: number
  last_used_at: number | null
  revoked_at: number | null
  revoked_by: string | null
}

export type DeliveriesTable = {
  id: string
  endpoint: string
  type: string
  /** The JSON text that is sent. */
  body: string
  state: string
  attempts: number
  next_at: number
  instance: string | null
  created_at: number
  last_at: number | null
  status: number | null
  error: string | null
  ended_at: number | null
}

export type Tables = {
  instances: InstancesTable
  calls: CallsTable
  audit: AuditTable
  tokens: TokensTable
  users: UsersTable
  sign_ins: SignInsTable
  agents: AgentsTable
  sessions: SessionsTable
  children: ChildrenTable
  memory: MemoryTable
  batches: BatchesTable
  documents: DocumentsTable
  config_changes: ConfigChangesTable
  results: ResultsTable
  result_parts: ResultPartsTable
  idempotency: IdempotencyTable
  secrets: SecretsTable
  secret_keys: SecretKeysTable
  pins: PinsTable
  server_entries: ServerEntriesTable
  tool_names: ToolNamesTable
  approvals: ApprovalsTable
  grants: GrantsTable
  deliveries: DeliveriesTable
}

/**
 * The query layer for both databases. It runs queries and compiles statements. Statements that must be written together
 * form a unit.
 */
export type Database = Kysely<Tables>

/** The name of a removed user or agent, so that the old name is free. Valid names cannot contain `~`. */
export const retiredName = sql<string>`name || '~' || id`

type Compilable = { compile(): CompiledQuery }

/** Compiles a query as a step of a unit. */
export function toStatement(query: Compilable, expect?: number): Statement {
  const { sql, parameters } = query.compile()
  return { sql, parameters, expect }
}

/**
 * Compiling takes longer than running the statement, and each call needs two, so the SQL is compiled only once.
 * `values` must return the parameters in the order of the SQL; the first use checks this.
 */
export function compiledOnce<Input>(
  build: (input: Input) => Compilable,
  values: (input: Input) => readonly unknown[],
  expect?: number,
): (input: Input) => Statement {
  let sql: string | undefined
  return (input) => {
    const parameters = values(input)
    sql ??= textFor(build(input).compile(), parameters)
    return { sql, parameters, expect }
  }
}

function textFor(compiled: CompiledQuery, parameters: readonly unknown[]): string {
  const same =
    compiled.parameters.length === parameters.length &&
    compiled.parameters.every((value, index) => Object.is(value, parameters[index]))
  if (!same) throw new Error(`The parameters are not in the order of the SQL: ${compiled.sql}`)
  return compiled.sql
}
