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
  /** Pid namespace and start time; null without /proc, for rows of older versions, and after the instance ended itself. */
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
  /** Links the entry to the one before it; empty for what is older than the chain. */
  hash: string
}

export type UsersTable = {
  /** What everything that belongs to the user refers to. */
  id: string
  /** Of a removed user `<name>~<id>`, so that somebody else can get the name. */
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
  /** Of a removed agent `<name>~<id>`. */
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
  /** JSON: what it states of servers. */
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

/** The number of an instance's last batch that was committed. */
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

/** Text that all instances share, such as the configuration. */
export type DocumentsTable = { name: string; version: number; format: string; body: string; updated_at: number }

/** What is kept of a result that was cut; `id` is the digest of its handle, so that the file gives no handle away. */
export type ResultsTable = {
  id: string
  /** The id of the identity that it was kept for. */
  principal: string
  form: string
  characters: number
  created_at: number
  used_at: number
}

/** A piece of it as JSON text, which every database keeps as it is, whatever characters are in it. */
export type ResultPartsTable = { result: string; from_at: number; to_at: number; text: string }

export type IdempotencyTable = {
  /** The id of the identity that took the key. */
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
  /** The id of the user whose scope it is; null for every other kind of scope. */
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

export type QuestionsTable = {
  id: string
  live: string | null
  call: string
  principal: string
  principal_id: string
  owner: string | null
  tool: string
  server: string
  title: string
  description: string | null
  risk: string
  arguments: string
  input: string | null
  meta: string | null
  meta_hash: string | null
  binding: string
  definition: string
  arguments_hash: string
  reason: string
  approvers: string
  state: string
  answers: string
  grant_id: string | null
  asked_at: number
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
  /** JSON, as it is sent. */
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
  questions: QuestionsTable
  grants: GrantsTable
  deliveries: DeliveriesTable
}

/** The one query layer. It queries and compiles; what must happen together is a unit of compiled statements. */
export type Database = Kysely<Tables>

/** What a removed user or agent is called, so that the name is free. No name that can be chosen contains the mark. */
export const retiredName = sql<string>`name || '~' || id`

type Compilable = { compile(): CompiledQuery }

/** One query as a step of a unit. */
export function toStatement(query: Compilable, expect?: number): Statement {
  const { sql, parameters } = query.compile()
  return { sql, parameters, expect }
}

/**
 * Compiling costs more than the statement itself, and a call on its road needs two: so their text is made once.
 * `values` must give the parameters in the order of the text, whose first use proves it.
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
  if (!same) throw new Error(`The parameters do not stand in the order of: ${compiled.sql}`)
  return compiled.sql
}
