import { goneScopesOf, idsOf, type Remover, type Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'

/** Removes the secrets of the removed scopes, and of earlier sessions of the removed users. */
export function createSecretsRemover(storage: Pick<Storage, 'secrets'>): Remover {
  const toRemoved = (subjects: readonly Subject[]) => ({
    scopes: goneScopesOf(subjects),
    ownerIds: idsOf(subjects, 'user'),
  })
  return {
    topics: ['secrets'],
    async list(subjects) {
      const gone = await storage.secrets.allOf(toRemoved(subjects))
      return gone.map(({ scope, name }) => ({ noun: 'secret', name: `${name} of ${scope}` }))
    },
    remove: (subjects) => [storage.secrets.removeAll(toRemoved(subjects))],
  }
}
