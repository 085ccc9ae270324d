import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalId } from '../contract/principal.ts'
import type { RemovalPlan } from '../contract/removal.ts'
import { idsOf, type Subject } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { Statement } from '../storage/unit.ts'
import type { Directory } from './directory.ts'
import { administers, manages } from './rights.ts'
import { demandAdministrator } from './users.ts'

export type RemovalTarget = {
  readonly name: string
  readonly id: string
  /** The removed identity first, then the agents of a removed user, then the open sessions. */
  readonly subjects: readonly Subject[]
}

/** Finds the identities that a removal of a user, an agent or a project affects. */
export type Subjects = {
  /** Throws unless the subject exists and `by` may remove it. */
  find(by: Principal, kind: RemovalPlan['kind'], name: string): RemovalTarget
  /** A project with its open sessions, also if the configuration does not contain it. The caller checks the rights. */
  ofProject(name: string): RemovalTarget
  /** The statements that end access. The guards fail for the last administrator. */
  disable(target: RemovalTarget): { readonly guards: readonly Statement[]; readonly steps: readonly Statement[] }
  /** The administrator who becomes the owner of the removed user's projects: `by`, or another one if `by` is removed. */
  heirOf(by: Principal, subjects: readonly Subject[]): string
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
    return toTarget([{ kind: 'user', name, id }, ...owned])
  }

  function findAgent(by: Principal, name: string): RemovalTarget {
    const agent = directory.findAgent(name)
    // The same error as for a missing agent, so that the names of other users' agents stay hidden.
    if (!agent || !manages(by, agent.owner)) throw new GatewayError('not-found', `No agent is named ${name}`)
    const { id } = agent
    return toTarget([{ kind: 'agent', name, id }])
  }

  function findProject(by: Principal, name: string): RemovalTarget {
    if (!administers(by)) throw new GatewayError('forbidden', 'Only administrators can remove projects')
    if (!hasProject(name)) throw new GatewayError('not-found', `No project is named ${name}`)
    return ofProject(name)
  }

  function ofProject(name: string): RemovalTarget {
    return toTarget([{ kind: 'project', name, id: `project-${name}` }])
  }

  function toTarget([first, ...others]: readonly [Subject, ...Subject[]]): RemovalTarget {
    const { name, id } = first
    const gone = [first, ...others]
    const ids = new Set(gone.map((each) => each.id))
    const sessions = directory.sessions().filter(({ ownerId = '', agentId = '', project }) => {
      return ids.has(ownerId) || ids.has(agentId) || (first.kind === 'project' && project === name)
    })
    const ending = sessions.map((session): Subject => {
      return { kind: 'session', name: session.name, id: toPrincipalId({ kind: 'session', name: session.name }) }
    })
    return { name, id, subjects: [...gone, ...ending] }
  }

  return {
    ofProject,
    find(by, kind, name) {
      if (kind === 'user') return findUser(by, name)
      return kind === 'agent' ? findAgent(by, name) : findProject(by, name)
    },
    disable({ subjects: [first] }) {
      const user = first?.kind === 'user' ? directory.findUser(first.name) : undefined
      // If another user has the name by now, nothing is disabled here, and the last commit of the removal fails.
      return user && user.id === first?.id ? storage.users.disable(user) : { guards: [], steps: [] }
    },
    heirOf(by, subjects) {
      const gone = new Set(idsOf(subjects, 'user'))
      if (!gone.has(toPrincipalId(by))) return by.name
      const others = directory.users().filter(({ id, disabledAt }) => !gone.has(id) && disabledAt === undefined)
      return others.find(({ role }) => role === 'administrator')?.name ?? by.name
    },
  }
}
