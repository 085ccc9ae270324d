import type { Agent } from '../contract/agent.ts'
import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { StoredAgent } from '../storage/agents.ts'
import type { Change } from '../storage/audit.ts'
import type { Storage } from '../storage/storage.ts'
import type { Directory } from './directory.ts'
import { administers, manages, oversees, toOwner } from './rights.ts'
import { parseName } from './tokens.ts'

/** Members have their own agents; administrators have all of them. */
export type Agents = {
  list(by: Principal): Agent[]
  add(wanted: { name: string; owner?: string; description?: string }, by: Principal): Promise<Agent>
  change(name: string, fields: { owner?: string; description?: string }, by: Principal): Promise<Agent>
  remove(name: string, by: Principal): Promise<void>
}

type AgentsParts = {
  readonly storage: Pick<Storage, 'agents' | 'changes'>
  readonly directory: Directory
  readonly clock: Clock
  /** The configuration has settings for an agent of this name: they must not fall to whoever comes first. */
  isConfigured(agent: string): boolean
  countTokens(agent: string): number
}

export function createAgents({ storage, directory, clock, isConfigured, countTokens }: AgentsParts): Agents {
  function getOwn(name: string, by: Principal): StoredAgent {
    const agent = directory.findAgent(name)
    // Somebody else's is no different from one that never was.
    if (agent && agent.removedAt === undefined && manages(by, agent.owner)) return agent
    throw new GatewayError('not-found', `No agent is named ${name}`)
  }

  async function announce(): Promise<void> {
    await storage.changes.announce('sessions')
    await storage.changes.announce('tokens')
  }

  function toAgent({ name, owner, description, createdAt }: StoredAgent): Agent {
    return { name, owner, description, createdAt: toIso(createdAt), tokens: countTokens(name) }
  }

  return {
    list: (by) =>
      directory
        .agents()
        .filter(({ owner }) => oversees(by) || manages(by, owner))
        .map(toAgent),
    async add(wanted, by) {
      const name = parseName('agent', wanted.name)
      const known = directory.findAgent(name)
      const reserved = known ? !manages(by, known.owner) : isConfigured(name) && !administers(by)
      if (reserved || (known && known.removedAt === undefined))
        throw new GatewayError('name-taken', `There is an agent named ${name}`)
      const owner = toOwner(by, wanted.owner)
      if (owner !== undefined) directory.demandUser(owner)
      const { description } = wanted
      const agent = { name, owner, description, createdAt: clock.now(), createdBy: toPrincipalKey(by) }
      const change = toChange(name, by, { action: 'agent-added', owner })
      const added = await storage.agents.add({ agent, change })
      await announce()
      if (!added) throw new GatewayError('name-taken', `There is an agent named ${name}`)
      return toAgent(getOwn(name, by))
    },
    async change(name, { owner, description }, by) {
      const agent = getOwn(name, by)
      if (owner !== undefined && owner !== agent.owner) {
        toOwner(by, owner)
        directory.demandUser(owner)
      }
      const fields = { ...(owner !== undefined && { owner }), ...(description !== undefined && { description }) }
      if (Object.keys(fields).length > 0) {
        await storage.agents.change(name, fields, toChange(name, by, { action: 'agent-changed', ...fields }))
        await announce()
      }
      return toAgent(directory.findAgent(name) ?? agent)
    },
    async remove(name, by) {
      getOwn(name, by)
      await storage.agents.remove(name, toChange(name, by, { action: 'agent-removed' }))
      await announce()
    },
  }
}

function toChange(name: string, by: Principal, body: Record<string, unknown>): Change {
  return { principal: toPrincipalKey(by), subject: `agent:${name}`, body }
}
