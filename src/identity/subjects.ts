import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import type { RemovalPlan } from '../contract/removal.ts'
import type { Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { Statement } from '../storage/unit.ts'
import type { Directory } from './directory.ts'
import { administers, manages } from './rights.ts'
import { demandAdministrator } from './users.ts'

export type RemovalTarget = {
  readonly name: string
  readonly id: string
  /** The identity itself first; for a user also the user's agents. */
  readonly subjects: readonly Subject[]
}

/** Who goes when a user, an agent or a project is removed. */
export type Subjects = {
  /** Throws unless it exists and `by` may remove it. */
  find(by: Principal, kind: RemovalPlan['kind'], name: string): RemovalTarget
  /** Steps that end access. The guards are refused for the last administrator. */
  disable(target: RemovalTarget): { readonly guards: readonly Statement[]; readonly steps: readonly Statement[] }
}

type SubjectsParts = {
  readonly storage: Pick<Storage, 'users'>
  readonly directory: Directory
  hasProject(name: string): boolean
}

export function createSubjects({ storage, directory, hasProject }: SubjectsParts): Subjects {
  function findUser(by: Principal, name: string): RemovalTarget {
    demandAdministrator(by)
    const user = directory.findUser(name)
    if (!user) throw new GatewayError('not-found', `No user is named ${name}`)
    const { id } = user
    const agents = directory.agents().filter(({ ownerId }) => ownerId === id)
    const owned = agents.map((agent): Subject => ({ kind: 'agent', name: agent.name, id: agent.id }))
    return { name, id, subjects: [{ kind: 'user', name, id }, ...owned] }
  }

  function findAgent(by: Principal, name: string): RemovalTarget {
    const agent = directory.findAgent(name)
    // An agent of somebody else is answered like one that does not exist.
    if (!agent || !manages(by, agent.owner)) throw new GatewayError('not-found', `No agent is named ${name}`)
    const { id } = agent
    return { name, id, subjects: [{ kind: 'agent', name, id }] }
  }

  function findProject(by: Principal, name: string): RemovalTarget {
    if (!administers(by)) throw new GatewayError('forbidden', 'Only administrators remove projects')
    if (!hasProject(name)) throw new GatewayError('not-found', `No project is named ${name}`)
    const id = `project-${name}`
    return { name, id, subjects: [{ kind: 'project', name, id }] }
  }

  return {
    find(by, kind, name) {
      if (kind === 'user') return findUser(by, name)
      return kind === 'agent' ? findAgent(by, name) : findProject(by, name)
    },
    disable({ subjects: [first] }) {
      const user = first?.kind === 'user' ? directory.findUser(first.name) : undefined
      return user ? storage.users.disable(user) : { guards: [], steps: [] }
    },
  }
}
