import type { Client, QueryResult } from 'pg'
import type { EntryNumbers, EntryPosition } from '../entries.ts'
import type { NewEntry, Statement, Unit, UnitOutcome } from '../unit.ts'
import { insertEntry, markBatch } from './writer.ts'

type Done = Extract<UnitOutcome, { kind: 'done' }>

/** The result or the error of one statement. */
type Answer = { readonly result: QueryResult; readonly error?: never } | { readonly error: unknown }

const nothing: Done = { kind: 'done', changes: 0, rows: [] }

/** Most statements repeat, so they are prepared on the server. The limit is for statements with lists of varying length. */
const mostPrepared = 256

/** Error codes that mean the database failed, not that one unit was invalid. */
const brokenStore = /^(08|53|57|58|XX|25006)/
/** Error codes of a conflict with another instance. Repeating the batch succeeds. */
const collision = /^40/

export type PostgresBatches = {
  /**
   * Begins a transaction and runs all units in it. A refused unit does not affect the other units. The caller commits.
   * Throws if the whole batch failed.
   */
  run(units: readonly Unit[], batch: number): Promise<UnitOutcome[]>
}

type BatchParts = { client: Client; instance: string; entries: EntryNumbers }

export function createPostgresBatches({ client, instance, entries }: BatchParts): PostgresBatches {
  const names = new Map<string, string>()

  return {
    async run(units, batch) {
      const before = entries.position()
      const outcomes = (await runPlainly(units)) ?? (await runEach(units, before))
      unwrap(await send(markBatch, [instance, batch]))
      return outcomes
    },
  }

  /** Sends all statements at once. Returns undefined if a unit is refused. */
  async function runPlainly(units: readonly Unit[]): Promise<UnitOutcome[] | undefined> {
    const begun = send('begin', [])
    const answers = await Promise.all(units.map(sendSteps))
    unwrap(await begun)
    const outcomes = units.map((unit, index) => toOutcome(unit, answers[index] ?? []))
    return outcomes.some(({ kind }) => kind === 'refused') ? undefined : outcomes
  }

  /** Starts again with a savepoint for each unit, so that a refused unit can be rolled back alone. */
  async function runEach(units: readonly Unit[], before: EntryPosition): Promise<UnitOutcome[]> {
    entries.rewind(before)
    void send('rollback', [])
    void send('begin', [])
    const outcomes: UnitOutcome[] = []
    for (const unit of units) outcomes.push(await runUnit(unit))
    return outcomes
  }

  async function runUnit(unit: Unit): Promise<UnitOutcome> {
    const before = entries.position()
    const saved = send('savepoint unit', [])
    const outcome = toOutcome(unit, await sendSteps(unit))
    unwrap(await saved)
    if (outcome.kind === 'refused') {
      void send('rollback to savepoint unit', [])
      entries.rewind(before)
    }
    void send('release savepoint unit', [])
    return outcome
  }

  function sendSteps(unit: Unit): Promise<Answer[]> {
    return Promise.all(unit.map((step) => ('entry' in step ? sendEntry(step.entry) : sendStatement(step))))
  }

  function sendEntry(entry: NewEntry): Promise<Answer> {
    const storable = { ...entry, principal: toText(entry.principal), subject: toText(entry.subject) }
    return send(insertEntry, entries.place(storable))
  }

  function sendStatement({ sql, parameters }: Statement): Promise<Answer> {
    return send(sql, parameters.map(toStorable))
  }

  function send(sql: string, values: unknown[]): Promise<Answer> {
    const name = values.length === 0 ? undefined : nameOf(sql)
    return client.query({ text: sql, values, ...(name !== undefined && { name }) }).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    )
  }

  function nameOf(sql: string): string | undefined {
    const known = names.get(sql)
    if (known !== undefined || names.size >= mostPrepared) return known
    const name = `s${names.size}`
    names.set(sql, name)
    return name
  }
}

function toOutcome(unit: Unit, answers: readonly Answer[]): UnitOutcome {
  let last = nothing
  for (const [step, action] of unit.entries()) {
    const answer = answers[step]
    if (!answer) continue
    if ('error' in answer && answer.error !== undefined) {
      if (isBroken(answer.error)) throw answer.error
      return { kind: 'refused', step, by: 'error', reason: String(answer.error) }
    }
    if ('entry' in action) continue
    const { rowCount, rows } = unwrap(answer)
    last = { kind: 'done', changes: rowCount ?? 0, rows }
    if (action.expect !== undefined && action.expect !== last.changes) {
      const reason = `${last.changes} rows changed instead of ${action.expect}`
      return { kind: 'refused', step, by: 'expectation', reason }
    }
  }
  return last
}

function unwrap(answer: Answer): QueryResult {
  if ('result' in answer) return answer.result
  throw answer.error
}

/** Errors from the server have a code and a severity. Errors of a lost connection do not. */
function isBroken(error: unknown): boolean {
  const code = codeOf(error)
  return code === undefined || brokenStore.test(code) || collision.test(code)
}

export function isCollision(error: unknown): boolean {
  return collision.test(codeOf(error) ?? '')
}

/** The code of an error that failed a statement but not the connection; else undefined. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || error.severity !== 'ERROR') return undefined
  return 'code' in error ? String(error.code) : undefined
}

function toStorable(value: unknown): unknown {
  return typeof value === 'string' ? toText(value) : value
}

/** PostgreSQL cannot store a NUL character in text. */
function toText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\u{FFFD}') : text
}
