import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { AgentName, NewToken, Token } from '../token.ts'
import { UserName } from '../user.ts'
import { byId, endpoint, page } from './base.ts'

export const tokens = {
  list: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/tokens',
      tags: ['tokens'],
      summary: 'List tokens of agents and sessions, without their values',
    })
    .output(page(Token)),
  create: endpoint(members)
    .route({
      method: 'POST',
      path: '/tokens',
      tags: ['tokens'],
      summary: 'Create a token for an agent or a session; no other answer contains the token',
      successStatus: 201,
    })
    .input(
      z.strictObject({
        agent: AgentName.optional().describe('The agent that will use the token. If it does not exist, it is added'),
        session: AgentName.optional().describe('Instead of an agent: the session that will use the token'),
        owner: UserName.optional().describe('Owner of an agent that is added. Default: the user who sends the request'),
        expiresAt: z.iso
          .datetime({ offset: true })
          .optional()
          .describe('Time at which the token expires. Default: never'),
      }),
    )
    .output(NewToken),
  revoke: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/tokens/{id}',
      tags: ['tokens'],
      summary: 'Revoke a token; it becomes invalid at once',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(Token),
}
