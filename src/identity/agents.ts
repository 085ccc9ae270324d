import type { Agent } from '../contract/agent.ts'
import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Storage } from '../storage/storage.ts'
import type { Change } from '../storage/tables/audit.ts'
import type { Directory, KnownAgent } from './directory.ts'
import { administers, manages, oversees, toOwner } from './rights.ts'
import { parseName } from './tokens.ts'

/** Members manage their own agents. Administrators manage all agents. */
export type Agents = {
  list(by: Principal): Agent[]
  add(by: Principal, wanted: { name: string; owner?: string; description?: string }): Promise<Agent>
  change(by: Principal, name: string, fields: { owner?: string; description?: string }): Promise<Agent>
}

type AgentsParts = {
  readonly storage: Pick<Storage, 'agents' | 'changes'>
  readonly directory: Directory
  readonly clock: Clock
  readonly ids: Ids
  /**
   * Whether the configuration has settings for an agent of this name. Only administrators may add such an agent, so
   * that nobody else gets these settings.
   */
  isConfigured(agent: string): boolean
  countTokens(agentId: string): number
}

export function createAgents({ storage, directory, clock, ids, isConfigured, countTokens }: AgentsParts): Agents {
  function getOwn(name: string, by: Principal): KnownAgent {
    const agent = directory.findAgent(name)
    // The same error as for a missing agent, so that the names of other users' agents stay hidden.
    if (agent && manages(by, agent.owner)) return agent
    throw new GatewayError('not-found', `No agent is named ${name}`)
  }

  async function announce(): Promise<void> {
    await storage.changes.announce('sessions')
    await storage.changes.announce('tokens')
  }

  function toAgent({ id, name, owner, description, createdAt }: KnownAgent): Agent {
    return { id, name, owner, description, createdAt: toIso(createdAt), tokens: countTokens(id) }
  }

  return {
    list: (by) =>
      directory
        .agents()
        .filter(({ owner }) => oversees(by) || manages(by, owner))
        .map(toAgent),
    async add(by, wanted) {
      const name = parseName('agent', wanted.name)
      const reserved = isConfigured(name) && !administers(by)
      if (reserved || directory.findAgent(name))
        throw new GatewayError('name-taken', `An agent named ${name} already exists`)
      const owner = toOwner(by, wanted.owner)
      const ownerId = owner === undefined ? undefined : directory.demandUser(owner).id
      const { description } = wanted
      const made = { createdAt: clock.now(), createdBy: toPrincipalKey(by) }
      const agent = { id: ids.next('agent'), name, ownerId, description, ...made }
      const change = toChange(name, by, { action: 'agent-added', owner })
      const added = await storage.agents.add({ agent, change })
      await announce()
      if (!added) throw new GatewayError('name-taken', `An agent named ${name} already exists`)
      return toAgent(getOwn(name, by))
    },
    async change(by, name, { owner, description }) {
      const agent = getOwn(name, by)
      if (owner !== undefined && owner !== agent.owner) toOwner(by, owner)
      const fields = { ...(owner !== undefined && { owner }), ...(description !== undefined && { description }) }
      if (Object.keys(fields).length > 0) {
        const ownerId = owner === undefined || owner === agent.owner ? agent.ownerId : directory.demandUser(owner).id
        await storage.agents.change(
          agent.id,
          { ownerId, description },
          toChange(name, by, { action: 'agent-changed', ...fields }),
        )
        await announce()
      }
      return toAgent(directory.findAgent(name) ?? agent)
    },
  }
}

function toChange(name: string, by: Principal, body: Record<string, unknown>): Change {
  return { principal: toPrincipalKey(by), subject: `agent:${name}`, body }
}
