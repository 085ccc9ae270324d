import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { Agent } from '../agent.ts'
import { RemovalPlan, Removed } from '../removal.ts'
import { AgentName } from '../token.ts'
import { UserName } from '../user.ts'
import { endpoint, page } from './base.ts'

const named = z.object({ params: z.strictObject({ name: z.string().describe('Name of the agent') }) })
const settings = {
  owner: UserName.optional().describe('The user who owns the agent. Default: the user who sends the request'),
  description: z.string().max(1000).optional(),
}

export const agents = {
  list: endpoint(allUsers)
    .route({ method: 'GET', path: '/agents', tags: ['agents'], summary: 'List the agents that the caller may see' })
    .output(page(Agent)),
  add: endpoint(members)
    .route({ method: 'POST', path: '/agents', tags: ['agents'], summary: 'Add an agent', successStatus: 201 })
    .input(z.strictObject({ name: AgentName, ...settings }))
    .output(Agent),
  change: endpoint(members)
    .route({
      method: 'PATCH',
      path: '/agents/{name}',
      tags: ['agents'],
      summary: "Change an agent's owner or description",
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject(settings) }))
    .output(Agent),
  removal: endpoint(members)
    .route({
      method: 'GET',
      path: '/agents/{name}/removal',
      tags: ['agents'],
      summary: 'List everything that the removal of an agent would remove or end',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(RemovalPlan),
  remove: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/agents/{name}',
      tags: ['agents'],
      summary: 'Remove an agent with everything that belongs to it: tokens, sessions, servers, secrets, grants',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Removed),
}
