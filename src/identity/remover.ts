import { idsOf, namesOf, type Remover, type Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { Tokens } from './tokens.ts'

type RemoverParts = {
  readonly storage: Pick<Storage, 'users' | 'agents' | 'sessions' | 'tokens'>
  readonly tokens: Pick<Tokens, 'labelsOf'>
}

/** Removes users, agents, sessions, tokens and sign-ins. */
export function createIdentityRemover({ storage, tokens }: RemoverParts): Remover {
  const holdersOf = (subjects: readonly Subject[]) => ({
    ownerIds: idsOf(subjects, 'user'),
    agentIds: idsOf(subjects, 'agent'),
    projects: namesOf(subjects, 'project'),
  })

  return {
    topics: ['users', 'sessions', 'tokens'],
    async list(subjects) {
      const agents = namesOf(subjects.slice(1), 'agent').map((name) => ({ noun: 'agent', name }))
      const labels = idsOf(subjects, 'agent').flatMap((id) => tokens.labelsOf(id))
      return [
        ...agents,
        ...labels.map((name) => ({ noun: 'token', name, effect: 'is revoked' })),
        ...namesOf(subjects, 'session').map((name) => ({ noun: 'session', name, effect: 'ends' })),
      ]
    },
    cut: (subjects) => [
      storage.tokens.revokeAll(idsOf(subjects, 'agent')),
      ...storage.sessions.endAll(holdersOf(subjects)),
    ],
    remove: (subjects) => [
      ...idsOf(subjects, 'agent').map((id) => storage.agents.retire(id)),
      ...idsOf(subjects, 'user').flatMap((id) => storage.users.retire(id)),
    ],
  }
}
