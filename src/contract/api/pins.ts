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
      summary: 'The accepted definitions of what servers offer, and where they say something else now',
    })
    .input(
      z.strictObject({
        server: z.string().optional().describe('Only those of this server'),
        scope: ScopeText.optional().describe('Where a name stands in several scopes'),
        state: z
          .union([PinState.transform((state) => [state]), z.array(PinState)])
          .optional()
          .describe('Only those in these states'),
      }),
    )
    .output(page(Pin)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/pins/{id}',
      tags: ['pins'],
      summary: 'One definition, as it was accepted and as it is now, and the difference as text',
      inputStructure: 'detailed',
    })
    .input(byId)
    .output(PinDetail),
  accept: endpoint(members)
    .route({
      method: 'POST',
      path: '/pins/{id}/accept',
      tags: ['pins'],
      summary: 'Take over what the server says now; 409 if that is not what was looked at',
      inputStructure: 'detailed',
    })
    .input(decided)
    .output(PinDetail),
  block: endpoint(members)
    .route({
      method: 'POST',
      path: '/pins/{id}/block',
      tags: ['pins'],
      summary: 'Hide it until somebody accepts it',
      inputStructure: 'detailed',
    })
    .input(decided)
    .output(PinDetail),
  acceptMany: endpoint(members)
    .route({
      method: 'POST',
      path: '/pins/accept',
      tags: ['pins'],
      summary: 'Take over several at once, all or none: the upgrade of a server',
    })
    .input(z.strictObject({ accept: z.array(PinDecision).min(1).max(20_000) }))
    .output(z.object({ accepted: z.int() })),
}
