import type { ResolvedCall } from '../../contract/permit.ts'
import { type Database, type IdempotencyTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'

/** What became of the call that took a key. */
export type TakenKey = {
  readonly hash: string
  readonly call: string
} & (
  | { readonly state: 'running' }
  | { readonly state: 'done'; readonly response: string }
  /** It was sent, and nobody can say whether it took effect. */
  | { readonly state: 'unknown' }
)

/** How the key of a call that ended goes on. */
export type KeyEnd =
  | { readonly kind: 'done'; readonly response: string }
  | { readonly kind: 'unknown' }
  /** Nothing was done: the key is free again. */
  | { readonly kind: 'released' }

export type KeyedCall = Pick<ResolvedCall, 'id' | 'principalId'> & { readonly once: NonNullable<ResolvedCall['once']> }

export type IdempotencyStore = {
  find(principalId: string, key: string): Promise<TakenKey | undefined>
  /** By the call that took it, whatever the key was. */
  findOf(call: string): Promise<TakenKey | undefined>
  /** Changes one row, or none while the key is taken: then its unit is refused, and with it the call. */
  take(call: KeyedCall): Statement
  end(call: KeyedCall, end: KeyEnd): Statement
  /** What was kept under it has reached who asked first; those who asked the same meanwhile come for it in a moment. */
  leave(principalId: string, key: string): Statement
  sweep(): Statement
  /** A step of a removal. */
  removeAll(principalIds: readonly string[]): Statement
}

/** The outcome of a call that a person approved is kept like that of a call with a key, until it was delivered. */
export function toApprovalKey(question: string): string {
  return `approval ${question}`
}

const keptMs = 24 * 60 * 60 * 1000
/** Longer than anybody waits for a call that is running. */
const leftMs = 5 * 60 * 1000

export function createIdempotencyStore(database: Database, now: () => number): IdempotencyStore {
  const taken = () =>
    database
      .selectFrom('idempotency')
      .leftJoin('calls', 'calls.id', 'idempotency.call')
      .select(['idempotency.hash', 'idempotency.call', 'idempotency.state', 'idempotency.response'])
      .select('calls.ended_at')

  return {
    async find(principalId, key) {
      const row = await taken()
        .where('idempotency.principal', '=', principalId)
        .where('idempotency.idempotency_key', '=', key)
        .where('idempotency.expires_at', '>', now())
        .executeTakeFirst()
      return row && toTakenKey(row)
    },
    async findOf(call) {
      const row = await taken().where('idempotency.call', '=', call).executeTakeFirst()
      return row && toTakenKey(row)
    },
    take({ id, principalId, once }) {
      const at = now()
      const row: IdempotencyTable = {
        principal: principalId,
        idempotency_key: once.key,
        hash: once.hash,
        call: id,
        state: 'running',
        response: null,
        created_at: at,
        expires_at: at + keptMs,
      }
      const insert = database.insertInto('idempotency').values(row)
      const { principal: _principal, idempotency_key: _key, ...renewed } = row
      return toStatement(
        insert.onConflict((conflict) =>
          conflict
            .columns(['principal', 'idempotency_key'])
            .doUpdateSet(renewed)
            .where('idempotency.expires_at', '<=', at),
        ),
        1,
      )
    },
    end({ id, principalId, once }, end) {
      if (end.kind === 'released') {
        const row = database.deleteFrom('idempotency').where('principal', '=', principalId)
        return toStatement(row.where('idempotency_key', '=', once.key).where('call', '=', id))
      }
      const response = end.kind === 'done' ? end.response : null
      const row = database.updateTable('idempotency').set({ state: end.kind, response })
      return toStatement(
        row.where('principal', '=', principalId).where('idempotency_key', '=', once.key).where('call', '=', id),
      )
    },
    leave: (principalId, key) =>
      toStatement(
        database
          .updateTable('idempotency')
          .set({ expires_at: now() + leftMs })
          .where('principal', '=', principalId)
          .where('idempotency_key', '=', key),
      ),
    removeAll: (principalIds) =>
      toStatement(database.deleteFrom('idempotency').where('principal', 'in', [...principalIds, ''])),
    sweep: () => toStatement(database.deleteFrom('idempotency').where('expires_at', '<=', now())),
  }
}

type FoundRow = Pick<IdempotencyTable, 'hash' | 'call' | 'state' | 'response'> & { readonly ended_at: number | null }

/** A key and its call end in one commit. If only the call has ended, it was found dead after its gateway was killed. */
function toTakenKey({ hash, call, state, response, ended_at }: FoundRow): TakenKey {
  if (state === 'done' && response !== null) return { hash, call, state: 'done', response }
  if (state === 'running' && ended_at === null) return { hash, call, state: 'running' }
  return { hash, call, state: 'unknown' }
}
