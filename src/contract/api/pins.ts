import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { Pin, PinDecision, PinDetail, PinState } from '../pin.ts'
import { byId, endpoint, page, ScopeText } from './base.ts'

const decided = byId.extend({ body: PinDecision.pick({ hash: true }) })

export const pins = {
  list: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/pins',
      tags: ['pins'],
      summary:
        'List pins: the accepted definitions of tools, prompts and resources, and how they differ from the current ones',
    })
    .input(
      z.strictObject({
        server: z.string().optional().describe('Only pins of this server'),
        scope: ScopeText.optional().describe('Scope of the server, if several scopes have a server of this name'),
        state: z
          .union([PinState.transform((state) => [state]), z.array(PinState)])
          .optional()
          .describe('Only pins in these states'),
      }),
    )
    .output(page(Pin)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/pins/{id}',
      tags: ['pins'],
      summary: 'Get one pin with the accepted and the current definition, and the difference as text',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(PinDetail),
  accept: endpoint(members)
    .route({
      method: 'POST',
      path: '/pins/{id}/accept',
      tags: ['pins'],
      summary: 'Accept the current definition; 409 if it is not the one with the given hash',
      inputStructure: 'detailed',
    })
    .input(decided)
    .output(PinDetail),
  block: endpoint(members)
    .route({
      method: 'POST',
      path: '/pins/{id}/block',
      tags: ['pins'],
      summary: 'Block the definition: hide it until somebody accepts it',
      inputStructure: 'detailed',
    })
    .input(decided)
    .output(PinDetail),
  acceptMany: endpoint(members)
    .route({
      method: 'POST',
      path: '/pins/accept',
      tags: ['pins'],
      summary: 'Accept several current definitions at once, all or none, for example after an upgrade of a server',
    })
    .input(z.strictObject({ accept: z.array(PinDecision).min(1).max(20_000) }))
    .output(z.object({ accepted: z.int() })),
}
