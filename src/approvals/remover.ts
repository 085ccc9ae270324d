import { idsOf, namesOf, type Remover, type Subject, scopesOf } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { ApprovalStore } from './store.ts'

type RemoverParts = {
  readonly storage: Pick<Storage, 'approvals' | 'grants'>
  readonly approvalStore: Pick<ApprovalStore, 'withdraw'>
}

/**
 * Approvals of removed principals are withdrawn. Grants for them, and grants that they gave, are revoked. An approval that a
 * removed user gave and that no call has used is withdrawn as well, like the grants: the account may have been stolen.
 */
export function createApprovalsRemover({ storage, approvalStore }: RemoverParts): Remover {
  async function grantsOf(subjects: readonly Subject[]) {
    const [keys, givers] = [new Set<string>(scopesOf(subjects)), new Set(idsOf(subjects, 'user'))]
    const active = await storage.grants.active()
    return active.filter(
      ({ principal = '', scope = '', giverId = '' }) => keys.has(principal) || keys.has(scope) || givers.has(giverId),
    )
  }

  const openOf = (subjects: readonly Subject[]) => storage.approvals.openBy(idsOf(subjects), namesOf(subjects, 'user'))

  return {
    topics: ['grants'],
    async list(subjects) {
      const [open, grants] = await Promise.all([openOf(subjects), grantsOf(subjects)])
      return [
        ...open.map(({ title }) => ({ noun: 'approval', name: title, effect: 'is withdrawn' })),
        ...grants.map(({ id, tools }) => ({ noun: 'grant', name: `${id} for ${tools}`, effect: 'is revoked' })),
      ]
    },
    remove: (subjects) => [
      storage.grants.revokeAll({ keys: scopesOf(subjects), giverIds: idsOf(subjects, 'user') }, 'removal'),
    ],
    async settle(subjects, why) {
      for (const approval of await openOf(subjects)) await approvalStore.withdraw(approval, why)
    },
  }
}
