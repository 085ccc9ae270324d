import { z } from 'zod'
import { everyone } from '../access.ts'
import { Call, CallState } from '../call.ts'
import { byId, endpoint, page, paging } from './base.ts'

export const calls = {
  list: endpoint(everyone)
    .route({ method: 'GET', path: '/calls', tags: ['calls'], summary: 'List calls, newest first' })
    .input(
      z.strictObject({
        ...paging,
        principal: z.string().optional().describe('Only calls of this principal, such as agent:reviewer'),
        tool: z.string().optional().describe('Only calls of this tool'),
        state: CallState.optional().describe('Only calls in this state'),
      }),
    )
    .output(page(Call)),
  get: endpoint(everyone)
    .route({ method: 'GET', path: '/calls/{id}', tags: ['calls'], summary: 'Get one call', inputStructure: 'detailed' })
    .input(byId)
    .output(Call),
}
