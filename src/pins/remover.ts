import { goneScopesOf, type Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'

/** The pins of the servers that the removed scopes state. */
export function createPinsRemover(storage: Pick<Storage, 'pins'>): Remover {
  return {
    topics: ['pins'],
    list: async () => [],
    remove: (subjects) => [storage.pins.removeAll(goneScopesOf(subjects))],
  }
}
