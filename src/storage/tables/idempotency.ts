import type { ResolvedCall } from '../../contract/permit.ts'
import { type Database, type IdempotencyTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'

/** The state of the call that used a key. */
export type TakenKey = {
  readonly hash: string
  readonly call: string
} & (
  | { readonly state: 'running' }
  | { readonly state: 'done'; readonly response: string }
  /** The call was sent, but nobody knows whether it took effect. */
  | { readonly state: 'unknown' }
)

/** The state of a key after its call has ended. */
export type KeyEnd =
  | { readonly kind: 'done'; readonly response: string }
  | { readonly kind: 'unknown' }
  /** Nothing was done, so the key can be used again. */
  | { readonly kind: 'released' }

export type KeyedCall = Pick<ResolvedCall, 'id' | 'principalId'> & { readonly once: NonNullable<ResolvedCall['once']> }

export type IdempotencyStore = {
  find(principalId: string, key: string): Promise<TakenKey | undefined>
  /** Finds the key by the call that used it. */
  findOf(call: string): Promise<TakenKey | undefined>
  /** Uses the key for a call. The unit is refused, and with it the call, if the key is in use. */
  take(call: KeyedCall): Statement
  end(call: KeyedCall, end: KeyEnd): Statement
  /**
   * Shortens the storage time after the first caller received the outcome. Callers of the same call can still read it
   * for a while.
   */
  leave(principalId: string, key: string): Statement
  sweep(): Statement
  /** A step of a removal. */
  removeAll(principalIds: readonly string[]): Statement
}

/** The outcome of an approved call is stored under such a key until it is delivered. */
export function toApprovalKey(approval: string): string {
  return `approval ${approval}`
}

const keptMs = 24 * 60 * 60 * 1000
/** Longer than any caller waits for a running call. */
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

/** A key and its call end in one commit. If only the call has ended, its gateway was killed, so the outcome is unknown. */
function toTakenKey({ hash, call, state, response, ended_at }: FoundRow): TakenKey {
  if (state === 'done' && response !== null) return { hash, call, state: 'done', response }
  if (state === 'running' && ended_at === null) return { hash, call, state: 'running' }
  return { hash, call, state: 'unknown' }
}
