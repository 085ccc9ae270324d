import { createHash } from 'node:crypto'
import { parseJson } from '../../lib/json.ts'
import { splitsPair, wholeEnd } from '../../lib/text.ts'
import { type Database, type ResultPartsTable, type ResultsTable, toStatement } from '../database.ts'
import type { Statement, Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'

/** The form of a stored text: text that the tool wrote, or the JSON of content that cannot be cut. */
export type ResultForm = 'text' | 'json'

export type NewResult = {
  /** Unguessable. Only the caller knows it: the database stores its digest. */
  readonly handle: string
  readonly principalId: string
  readonly form: ResultForm
  readonly text: string
}

export type ResultPiece = {
  readonly form: ResultForm
  readonly text: string
  /** The start of the piece, and the length of the whole text, in UTF-16 units. */
  readonly offset: number
  readonly total: number
}

export type ResultRequest = {
  readonly handle: string
  readonly principalId: string
  readonly offset: number
  readonly length: number
}

export type ResultStore = {
  /**
   * Resolves when all of the text is durable. False if the text exceeds the limits. The oldest results are dropped to
   * make space.
   */
  keep(result: NewResult): Promise<boolean>
  /** Undefined if the handle does not exist, belongs to another principal, or has not been used for `keptMs`. */
  read(request: ResultRequest, keptMs: number): Promise<ResultPiece | undefined>
  /** Drops results that have not been used for `keptMs`. */
  sweep(keptMs: number): Promise<void>
  /** A step of a removal: the next sweep drops the results of these principals. */
  removeAll(principalIds: readonly string[]): Statement
}

export type ResultBounds = {
  readonly perPrincipal: { readonly count: number; readonly characters: number }
  readonly inAll: { readonly count: number; readonly characters: number }
}

const bounds: ResultBounds = {
  perPrincipal: { count: 100, characters: 67_108_864 },
  inAll: { count: 1000, characters: 268_435_456 },
}

/** Small enough that a commit of one part does not delay claims. Large enough that most pages are within one part. */
const partLength = 131_072
const partsPerDrop = 16

type ResultStoreParts = { database: Database; writer: Writer; now(): number; bounds?: ResultBounds | undefined }

/**
 * Stores the rest of truncated results in parts. Each part is its own commit, so that claims can be committed in
 * between.
 */
export function createResultStore({ database, writer, now, bounds: given = bounds }: ResultStoreParts): ResultStore {
  let turn: Promise<unknown> = Promise.resolve()

  return {
    keep,
    read,
    removeAll: (principalIds) =>
      toStatement(
        database
          .updateTable('results')
          .set({ used_at: 0 })
          .where('principal', 'in', [...principalIds, '']),
      ),
    async sweep(keptMs) {
      const old = await database
        .selectFrom('results')
        .select('id')
        .where('used_at', '<=', now() - keptMs)
        .execute()
      for (const { id } of old) await drop(id)
    },
  }

  async function keep({ handle, principalId, form, text }: NewResult): Promise<boolean> {
    if (text.length > given.perPrincipal.characters) return false
    const id = toDigest(handle)
    const at = now()
    const row = { id, principal: principalId, form, characters: text.length, created_at: at, used_at: at }
    // Reservations run one after the other, or two of them would use the same space. The parts are written
    // concurrently.
    const reserved = turn.then(() => reserve(row))
    turn = reserved.catch(() => {})
    await reserved
    for (let from = 0; from < text.length; ) {
      const to = wholeEnd(text, from, from + partLength)
      const part = { result: id, from_at: from, to_at: to, text: JSON.stringify(text.slice(from, to)) }
      if (!(await add(part))) return false
      from = to
    }
    return true
  }

  /** The row is written before its parts, so that parts left by a crash are dropped together with it. */
  async function reserve(row: ResultsTable): Promise<void> {
    await makeRoom(row.principal, row.characters)
    await commit([toStatement(database.insertInto('results').values(row), 1)])
  }

  /** False if the result was dropped to make space. */
  function add(part: ResultPartsTable): Promise<boolean> {
    const row = database.updateTable('results').set({ used_at: now() }).where('id', '=', part.result)
    return commit([toStatement(row, 1), toStatement(database.insertInto('result_parts').values(part), 1)])
  }

  async function read(request: ResultRequest, keptMs: number): Promise<ResultPiece | undefined> {
    const id = toDigest(request.handle)
    const row = await database
      .selectFrom('results')
      .select(['form', 'characters'])
      .where('id', '=', id)
      .where('principal', '=', request.principalId)
      .where('used_at', '>', now() - keptMs)
      .executeTakeFirst()
    if (!row) return undefined
    writer.attempt([toStatement(database.updateTable('results').set({ used_at: now() }).where('id', '=', id))])
    const total = Number(row.characters)
    const offset = Math.min(request.offset, total)
    const end = Math.min(offset + request.length, total)
    // Reads one character more on each side, to detect a surrogate pair at the edge.
    const parts = await database
      .selectFrom('result_parts')
      .select(['from_at', 'text'])
      .where('result', '=', id)
      .where('from_at', '<=', end)
      .where('to_at', '>=', offset)
      .orderBy('from_at')
      .execute()
    const base = Number(parts[0]?.from_at ?? 0)
    const text = parts.map((part) => String(parseJson(Buffer.from(part.text)))).join('')
    const from = splitsPair(text, offset - base) ? offset - base - 1 : offset - base
    const piece = text.slice(from, wholeEnd(text, from, Math.min(from + request.length, total - base)))
    return { form: row.form === 'json' ? 'json' : 'text', text: piece, offset: base + from, total }
  }

  /** Drops the oldest results first: those of this principal above its limit, then any above the total limit. */
  async function makeRoom(principal: string, characters: number): Promise<void> {
    const rows = await database.selectFrom('results').selectAll().orderBy('used_at').orderBy('id').execute()
    const gone = new Set<string>()
    const shrink = (among: typeof rows, most: ResultBounds['inAll']) => {
      const left = among.filter(({ id }) => !gone.has(id))
      let count = left.length
      let sum = left.reduce((total, row) => total + Number(row.characters), 0)
      for (const row of left) {
        if (count < most.count && sum + characters <= most.characters) return
        gone.add(row.id)
        count--
        sum -= Number(row.characters)
      }
    }
    shrink(
      rows.filter((row) => row.principal === principal),
      given.perPrincipal,
    )
    shrink(rows, given.inAll)
    for (const id of gone) await drop(id)
  }

  /** Drops in steps, as it was written. The row is removed in the last step; afterwards no part can be added. */
  async function drop(id: string): Promise<void> {
    const rest = database.deleteFrom('result_parts').where('result', '=', id)
    const parts = await database
      .selectFrom('result_parts')
      .select('from_at')
      .where('result', '=', id)
      .orderBy('from_at')
      .execute()
    for (const [index, { from_at }] of parts.entries()) {
      if (index % partsPerDrop === partsPerDrop - 1) await commit([toStatement(rest.where('from_at', '<=', from_at))])
    }
    await commit([toStatement(rest), toStatement(database.deleteFrom('results').where('id', '=', id))])
  }

  /** False if an expected row no longer exists. */
  async function commit(unit: Unit): Promise<boolean> {
    const outcome = await writer.commit(unit)
    if (outcome.kind === 'done') return true
    if (outcome.by === 'expectation') return false
    throw new Error(`A result could not be stored: ${outcome.reason}`)
  }
}

function toDigest(handle: string): string {
  return createHash('sha256').update(handle).digest('hex')
}
