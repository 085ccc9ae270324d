import { goneScopesOf, idsOf, type Remover, type Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'

/** The secrets of the removed scopes, and of sessions of the removed users that have ended before. */
export function createSecretsRemover(storage: Pick<Storage, 'secrets'>): Remover {
  const goneOf = (subjects: readonly Subject[]) => ({
    scopes: goneScopesOf(subjects),
    ownerIds: idsOf(subjects, 'user'),
  })
  return {
    topics: ['secrets'],
    async list(subjects) {
      const gone = await storage.secrets.allOf(goneOf(subjects))
      return gone.map(({ scope, name }) => ({ noun: 'secret', name: `${name} of ${scope}` }))
    },
    remove: (subjects) => [storage.secrets.removeAll(goneOf(subjects))],
  }
}
