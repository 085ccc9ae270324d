import { z } from 'zod'
import { AgentName, NewToken, Token } from '../token.ts'
import { base, byId, page } from './base.ts'

export const tokens = {
  list: base
    .route({
      method: 'GET',
      path: '/tokens',
      tags: ['tokens'],
      summary: 'Tokens of agents, without the tokens themselves',
    })
    .output(page(Token)),
  create: base
    .route({
      method: 'POST',
      path: '/tokens',
      tags: ['tokens'],
      summary: 'Make a token for an agent; the only answer that shows it',
      successStatus: 201,
    })
    .input(
      z.strictObject({
        agent: AgentName,
        expiresAt: z.iso.datetime({ offset: true }).optional().describe('The token stops working then'),
      }),
    )
    .output(NewToken),
  revoke: base
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
