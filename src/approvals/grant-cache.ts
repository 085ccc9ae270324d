import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Grant } from '../contract/grant.ts'
import type { Log } from '../lib/log.ts'
import { createTurns } from '../lib/turns.ts'
import { type Answerer, countsFor, findGrants, type Grantee } from '../policy/policy.ts'
import type { Storage } from '../storage/storage.ts'

/** The active grants in the memory of this instance. The claim in the database decides whether a grant can still be used. */
export type GrantCache = {
  /** The grants that allow a call which these approvers would have to approve, in the order of use. */
  find(call: Grantee & { readonly approvers: readonly string[] }): Grant[]
  /** Must be called when a claim found that the grant is used up, expired or revoked. */
  drop(id: string): void
  /** Must be called when a use of a grant was returned, because the call was not sent. */
  refunded(): void
  add(grant: Grant, by: string): Promise<void>
  /** After it resolves no instance uses the grant, because every claim reads the database. */
  revoke(id: string, by: string): Promise<Grant>
  close(): void
}

type GrantCacheParts = {
  readonly storage: Pick<Storage, 'grants' | 'changes'>
  /** The current data of a user. */
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
        log.warn(
          { code: toGatewayError(error).code },
          'a refunded grant could not be announced; it can be used again after the next change of grants',
        )
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
      await grants.revoke(id, by, change) // does nothing if the grant was revoked before
      const grant = await grants.find(id)
      if (!grant) throw new GatewayError('grant-not-found', `No grant has the id ${id}`)
      await changes.announce('grants')
      return grant
    },
    close: stop,
  }
}
