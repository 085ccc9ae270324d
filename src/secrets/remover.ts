import { type Remover, scopesOf } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'

/** The secrets of the removed scopes. */
export function createSecretsRemover(storage: Pick<Storage, 'secrets'>): Remover {
  return {
    topics: ['secrets'],
    async list(subjects) {
      const scopes = new Set<string>(scopesOf(subjects))
      const all = await storage.secrets.all()
      return all
        .filter(({ scope }) => scopes.has(scope))
        .map(({ scope, name }) => ({ noun: 'secret', name: `${name} of ${scope}` }))
    },
    remove: (subjects) => [storage.secrets.removeAll(scopesOf(subjects))],
  }
}
