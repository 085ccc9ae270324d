import { createRounds } from '../lib/rounds.ts'

/** Topics of data that instances cache in memory and read again after a change. */
export const changeTopics = [
  'users',
  'tokens',
  'sessions',
  'secrets',
  'pins',
  'grants',
  'approvals',
  'config',
  'names',
] as const
export type ChangeTopic = (typeof changeTopics)[number]

export type Changes = {
  /**
   * Resolves when every instance on this database has read this topic again. For example, a token that was revoked
   * before is then refused everywhere.
   */
  announce(topic: ChangeTopic): Promise<void>
  on(topic: ChangeTopic, listener: () => Promise<void>): () => void
}

/** For a single instance. Announcements that arrive while a topic is being read share the next read. */
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

/** One shared run per topic, as in `createRounds`. */
export function perTopic(toRun: (topic: ChangeTopic) => () => Promise<void>): Record<ChangeTopic, () => Promise<void>> {
  return {
    users: createRounds(toRun('users')),
    tokens: createRounds(toRun('tokens')),
    sessions: createRounds(toRun('sessions')),
    secrets: createRounds(toRun('secrets')),
    pins: createRounds(toRun('pins')),
    grants: createRounds(toRun('grants')),
    approvals: createRounds(toRun('approvals')),
    config: createRounds(toRun('config')),
    names: createRounds(toRun('names')),
  }
}
