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
      summary: 'Tokens of agents and sessions, without the tokens themselves',
    })
    .output(page(Token)),
  create: endpoint(members)
    .route({
      method: 'POST',
      path: '/tokens',
      tags: ['tokens'],
      summary: 'Make a token for an agent or a session; the only answer that shows it',
      successStatus: 201,
    })
    .input(
      z.strictObject({
        agent: AgentName.optional().describe('The agent that will use it; it is added if there is none of this name'),
        session: AgentName.optional().describe('Or the session'),
        owner: UserName.optional().describe('The user behind an agent that is added; whoever asks, if nothing is said'),
        expiresAt: z.iso.datetime({ offset: true }).optional().describe('The token stops working then'),
      }),
    )
    .output(NewToken),
  revoke: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/tokens/{id}',
      tags: ['tokens'],
      summary: 'Make a token useless at once',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(Token),
}
