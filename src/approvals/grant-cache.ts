import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Grant } from '../contract/grant.ts'
import type { Log } from '../lib/log.ts'
import { createTurns } from '../lib/turns.ts'
import { type Answerer, countsFor, findGrants, type Grantee } from '../policy/policy.ts'
import type { Storage } from '../storage/storage.ts'

/** The standing permissions as this instance remembers them. What may still be spent, the claim decides. */
export type GrantCache = {
  /** Those that permit a call which these people would have to approve, the one to spend first. */
  find(call: Grantee & { readonly approvers: readonly string[] }): Grant[]
  /** A claim found it used up, over or taken back. */
  drop(id: string): void
  /** One more call may be left after all. */
  refunded(): void
  add(grant: Grant, by: string): Promise<void>
  /** Holds everywhere when it resolves: every claim asks the database. */
  revoke(id: string, by: string): Promise<Grant>
  close(): void
}

type GrantCacheParts = {
  readonly storage: Pick<Storage, 'grants' | 'changes'>
  /** A user as they are at this moment. */
  findUser(name: string): (Answerer & { readonly id: string }) | undefined
  readonly log: Log
}

export async function createGrantCache({ storage, findUser, log }: GrantCacheParts): Promise<GrantCache> {
  const { grants, changes } = storage
  let active = await grants.active()
  const inTurn = createTurns()
  const stop = changes.on('grants', () =>
    inTurn(async () => {
      active = await grants.active()
    }),
  )

  /** The user who gave the grant. After a removal a different user can have the same name; the ids differ. */
  function findGiver({ givenBy, giverId }: Grant): Answerer | undefined {
    const user = findUser(givenBy)
    return user && (giverId ?? user.id) === user.id ? user : undefined
  }

  return {
    find(call) {
      if (active.length === 0) return []
      return findGrants(active, call).filter((grant) => countsFor(findGiver(grant), call))
    },
    drop(id) {
      active = active.filter((grant) => grant.id !== id)
    },
    refunded() {
      changes.announce('grants').catch((error: unknown) => {
        log.warn({ code: toGatewayError(error).code }, 'a refunded grant is used again later')
      })
    },
    async add(grant, by) {
      const { id, tools, arguments: conditions, principal, scope, budget, expiresAt, reason } = grant
      const facts = { action: 'grant-given', id, tools, conditions, principal, scope, budget, expiresAt, reason }
      await grants.add(grant, { principal: by, subject: `grant:${id}`, body: facts })
      await changes.announce('grants')
    },
    async revoke(id, by) {
      const change = { principal: by, subject: `grant:${id}`, body: { action: 'grant-revoked', id } }
      await grants.revoke(id, by, change) // one that was taken back before stays as it is
      const grant = await grants.find(id)
      if (!grant) throw new GatewayError('grant-not-found', `No grant has the id ${id}`)
      await changes.announce('grants')
      return grant
    },
    close: stop,
  }
}
