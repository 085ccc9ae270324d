import { idsOf, type Remover, type Subject, scopesOf } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { Board } from './board.ts'

type RemoverParts = {
  readonly storage: Pick<Storage, 'questions' | 'grants'>
  readonly board: Pick<Board, 'withdraw'>
}

/** Approvals of removed principals are withdrawn. Grants for them, and grants that they gave, are revoked. */
export function createApprovalsRemover({ storage, board }: RemoverParts): Remover {
  async function grantsOf(subjects: readonly Subject[]) {
    const [keys, givers] = [new Set<string>(scopesOf(subjects)), new Set(idsOf(subjects, 'user'))]
    const active = await storage.grants.active()
    return active.filter(
      ({ principal = '', scope = '', giverId = '' }) => keys.has(principal) || keys.has(scope) || givers.has(giverId),
    )
  }

  return {
    topics: ['grants'],
    async list(subjects) {
      const [open, grants] = await Promise.all([storage.questions.openBy(idsOf(subjects)), grantsOf(subjects)])
      return [
        ...open.map(({ title }) => ({ noun: 'approval', name: title, effect: 'is withdrawn' })),
        ...grants.map(({ id, tools }) => ({ noun: 'grant', name: `${id} for ${tools}`, effect: 'is revoked' })),
      ]
    },
    remove: (subjects) => [
      storage.grants.revokeAll({ keys: scopesOf(subjects), giverIds: idsOf(subjects, 'user') }, 'removal'),
    ],
    async settle(subjects, why) {
      for (const question of await storage.questions.openBy(idsOf(subjects))) await board.withdraw(question, why)
    },
  }
}
