import { goneScopesOf, type Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'

/** Removes the pins of servers in the removed scopes. */
export function createPinsRemover(storage: Pick<Storage, 'pins'>): Remover {
  return {
    topics: ['pins'],
    list: async () => [],
    remove: (subjects) => [storage.pins.removeAll(goneScopesOf(subjects))],
  }
}
