import { createRounds } from '../lib/rounds.ts'

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

/** One instance, one memory. Announcements that come while a topic is being read share its next reading. */
export function createLocalChanges(): Changes {
  const listeners = new Map<ChangeTopic, Set<() => Promise<void>>>()
  const readings = perTopic((topic) => async () => {
    await Promise.all([...(listeners.get(topic) ?? [])].map((listener) => listener()))
  })
  return {
    announce: (topic) => readings[topic](),
    on(topic, listener) {
      const known = listeners.get(topic) ?? new Set()
      listeners.set(topic, known)
      known.add(listener)
      return () => known.delete(listener)
    },
  }
}

/** Shared rounds of some work, for each topic its own. */
export function perTopic(toRun: (topic: ChangeTopic) => () => Promise<void>): Record<ChangeTopic, () => Promise<void>> {
  return {
    users: createRounds(toRun('users')),
    tokens: createRounds(toRun('tokens')),
    sessions: createRounds(toRun('sessions')),
    secrets: createRounds(toRun('secrets')),
    pins: createRounds(toRun('pins')),
    grants: createRounds(toRun('grants')),
    questions: createRounds(toRun('questions')),
    config: createRounds(toRun('config')),
  }
}
