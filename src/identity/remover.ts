import { idsOf, namesOf, type Remover, type Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { Directory } from './directory.ts'
import type { Tokens } from './tokens.ts'

type RemoverParts = {
  readonly storage: Pick<Storage, 'users' | 'agents' | 'sessions' | 'tokens'>
  readonly directory: Directory
  readonly tokens: Pick<Tokens, 'labelsOf'>
}

/** Users, agents, sessions, tokens and sign-ins. */
export function createIdentityRemover({ storage, directory, tokens }: RemoverParts): Remover {
  const holdersOf = (subjects: readonly Subject[]) => ({
    ownerIds: idsOf(subjects, 'user'),
    agentIds: idsOf(subjects, 'agent'),
    projects: namesOf(subjects, 'project'),
  })
  function sessionsOf(subjects: readonly Subject[]): string[] {
    const { ownerIds, agentIds, projects } = holdersOf(subjects)
    return directory
      .sessions()
      .filter(
        ({ ownerId = '', agentId = '', project = '' }) =>
          ownerIds.includes(ownerId) || agentIds.includes(agentId) || projects.includes(project),
      )
      .map(({ name }) => name)
  }

  return {
    topics: ['users', 'sessions', 'tokens'],
    async list(subjects) {
      const [first, ...others] = subjects
      const agents = first?.kind === 'user' ? others.map(({ name }) => ({ noun: 'agent', name })) : []
      const labels = idsOf(subjects, 'agent').flatMap((id) => tokens.labelsOf(id))
      return [
        ...agents,
        ...labels.map((name) => ({ noun: 'token', name, effect: 'is revoked' })),
        ...sessionsOf(subjects).map((name) => ({ noun: 'session', name, effect: 'ends' })),
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
