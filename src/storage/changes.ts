/** What is kept in memory from the database, and therefore read again when somebody changes it. */
export const changeTopics = ['users', 'tokens', 'sessions', 'secrets', 'pins', 'grants', 'questions', 'config'] as const
export type ChangeTopic = (typeof changeTopics)[number]

export type Changes = {
  /**
   * Resolves when everyone who keeps something of this topic in memory has read it again, in every living instance on
   * this database: what was revoked before is then refused everywhere.
   */
  announce(topic: ChangeTopic): Promise<void>
  on(topic: ChangeTopic, listener: () => Promise<void>): () => void
}

/** One instance, one memory. */
export function createLocalChanges(): Changes {
  const listeners = new Map<ChangeTopic, Set<() => Promise<void>>>()
  return {
    async announce(topic) {
      await Promise.all([...(listeners.get(topic) ?? [])].map((listener) => listener()))
    },
    on(topic, listener) {
      const known = listeners.get(topic) ?? new Set()
      listeners.set(topic, known)
      known.add(listener)
      return () => known.delete(listener)
    },
  }
}
